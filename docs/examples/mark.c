/* Marks a path and waits until it can't be missed: cc mark.c -lspoor && ./a.out /run/spoor/spoor.sock bucket/object */
#include <spoor.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  spoor_options options;
  spoor_client *client = NULL;
  int result;

  if (argc != 3) {
    fprintf(stderr, "usage: %s SOCKET PATH\n", argv[0]);
    return 2;
  }
  memset(&options, 0, sizeof(options)); /* what is 0 has its default */
  options.size = sizeof(options);
  options.socket = argv[1];
  result = spoor_open(&options, &client);
  if (result == SPOOR_OK) result = spoor_mark(client, argv[2], strlen(argv[2]), SPOOR_DIR, 10000);
  if (result == SPOOR_OK) result = spoor_flush(client, 10000);
  if (result != SPOOR_OK) fprintf(stderr, "not marked: %s\n", spoor_last_error());
  spoor_close(client, 0);
  return result == SPOOR_OK ? 0 : 1;
}
