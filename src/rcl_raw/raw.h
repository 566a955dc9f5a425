/* A narrow door to rcl for what rclrs does not expose: forwarding serialized messages between two domains.
 *
 * rcl's option structures differ between distributions; this file is compiled against the headers of the one in
 * use, so that the Rust side sees only pointers, integers and plain structures. Every function returns 0 or a
 * positive result on success and a negative number on failure, with the reason in err. No function keeps a
 * pointer it was given, except to the domains of a route, which must outlive it.
 */
#ifndef OPENLINK_RAW_H
#define OPENLINK_RAW_H

#include <stddef.h>
#include <stdint.h>

#define OL_GID_SIZE 24

/* Policies as rmw numbers them; durations in ns, 0 for the default, INT64_MAX for infinite. */
typedef struct {
  int32_t history;
  uint32_t depth;
  int32_t reliability;
  int32_t durability;
  int64_t deadline_ns;
  int64_t lifespan_ns;
  int32_t liveliness;
  int64_t lease_ns;
} ol_qos;

typedef struct ol_domain ol_domain;
typedef struct ol_route ol_route;

/* What one message was, after it was forwarded or skipped. */
typedef struct {
  uint64_t bytes;
  int64_t source_ns;   /* wall clock of the publisher, 0 if unknown */
  int64_t received_ns; /* wall clock of the reception here, 0 if unknown */
  uint8_t gid[OL_GID_SIZE];
} ol_taken;

/* One publisher of a topic, as the graph shows it. */
typedef struct {
  ol_qos qos;
  uint8_t gid[OL_GID_SIZE];
  char type[256];
} ol_endpoint;

/* The name of the middleware in use; the text lives as long as the process. */
const char *ol_rmw_name(void);

/* Makes a context and a node in a domain. */
ol_domain *ol_domain_open(size_t domain_id, const char *node_name, const char *const *argv, int argc, char *err,
                          size_t err_len);
void ol_domain_close(ol_domain *domain);

/* Waits until the graph changes, ol_domain_wake is called, or the time is over. 1: changed or woken, 0: time over. */
int ol_domain_wait_graph(ol_domain *domain, int64_t timeout_ns, char *err, size_t err_len);
/* May be called from any thread. */
int ol_domain_wake(ol_domain *domain);

/* Publishers of a topic; returns how many there are, of which at most max are written. */
int ol_publishers(ol_domain *domain, const char *topic, ol_endpoint *out, size_t max, char *err, size_t err_len);
/* Number of subscriptions of a topic. */
int ol_count_subscribers(ol_domain *domain, const char *topic, char *err, size_t err_len);

/* Joins a topic of one domain to a topic of another. type_support is what the type's library hands out. */
ol_route *ol_route_open(ol_domain *from, ol_domain *to, const char *from_topic, const char *to_topic,
                        const void *type_support, const ol_qos *subscription, const ol_qos *publisher, char *err,
                        size_t err_len);
void ol_route_close(ol_route *route);
/* The identity of the route's publisher. */
int ol_route_gid(ol_route *route, uint8_t *gid, char *err, size_t err_len);
/* Waits for a message, ol_route_wake, or the end of the time. 1: there may be a message, 0: none. */
int ol_route_wait(ol_route *route, int64_t timeout_ns, char *err, size_t err_len);
/* May be called from any thread. */
int ol_route_wake(ol_route *route);
/* Takes one message. 1: taken, 0: there is none. */
int ol_route_take(ol_route *route, ol_taken *taken, char *err, size_t err_len);
/* Publishes the message taken last. */
int ol_route_publish(ol_route *route, char *err, size_t err_len);

#endif
