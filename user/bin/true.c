/*
 * true: ends well.
 */
int main(void)
{
    return 0;
}
