/* One link to a drone or a bridge behind a C interface: libopenlink_c.so. Every function may be called from any
 * thread; only openlink_free must be the last one. Packets are CRTP packets, header first, 1 to 31 bytes. */
#ifndef OPENLINK_H
#define OPENLINK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct openlink openlink_t;

/* Opens the link that the URI names, as `openlink bridge --to` takes it. NULL on failure, with the reason in `error`. */
openlink_t *openlink_open(const char *uri, char *error, size_t size);
/* 0: taken; -1: closed; -2: too many packets wait; -3: not 1 to 31 bytes. */
int openlink_send(const openlink_t *link, const uint8_t *bytes, size_t length);
/* Length of the packet written to `bytes` (room for 31); 0: `wait_ms` is over; -1: closed. */
int openlink_receive(const openlink_t *link, uint8_t *bytes, uint32_t wait_ms);
/* 0: connecting, 1: up, 2: lost and calling again, 3: closed. `quality`: 0 to 1, or -1 where it is not known. */
int openlink_status(const openlink_t *link, double *quality, char *text, size_t size);
/* Lets the last packets leave and closes; whoever waits in openlink_receive returns. */
void openlink_close(const openlink_t *link);
/* Frees a link, which closes it. */
void openlink_free(openlink_t *link);

#ifdef __cplusplus
}
#endif

#endif
