/* Counts what a program copies by memcpy and memmove, for counts.py: preloaded, it writes the calls and the
 * bytes into the file that COPIES names when the program ends. Copies that the compiler wrote inline are
 * not in it. The loops are slow, and call nothing. */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned long calls, bytes;

static void count(size_t n) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&bytes, n, __ATOMIC_RELAXED);
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  unsigned char *out = to;
  const unsigned char *in = from;
  count(n);
  for (size_t i = 0; i < n; i++) out[i] = in[i];
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  unsigned char *out = to;
  const unsigned char *in = from;
  count(n);
  if (out < in) {
    for (size_t i = 0; i < n; i++) out[i] = in[i];
  } else {
    while (n-- > 0) out[n] = in[n];
  }
  return to;
}

__attribute__((destructor)) static void tell(void) {
  const char *path = getenv("COPIES");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) {
    fprintf(file, "%lu %lu\n", calls, bytes);
    fclose(file);
  }
}
