/* A narrow door to rcl for what rclrs does not expose: serialized publishing and taking, the graph with its
 * endpoints, and services by type name.
 *
 * rcl's option structures differ between distributions; these files are compiled against the headers of the one
 * in use, so that the Rust side sees only pointers, integers and plain structures. Every function that returns a
 * number returns 0 or more on success and a negative number on failure, with the reason in err. No function keeps
 * a pointer it was given, except to the domain and the type support of what it opens, which must outlive it.
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
typedef struct ol_publisher ol_publisher;
typedef struct ol_subscription ol_subscription;
typedef struct ol_server ol_server;
typedef struct ol_client ol_client;

/* What one message was. */
typedef struct {
  const uint8_t *data; /* valid until the next take */
  uint64_t bytes;
  int64_t source_ns;   /* wall clock of the publisher, 0 if unknown */
  int64_t received_ns; /* wall clock of the reception here, 0 if unknown */
  uint8_t gid[OL_GID_SIZE];
} ol_taken;

/* One publisher or subscription of a topic, as the graph shows it. */
typedef struct {
  ol_qos qos;
  uint8_t gid[OL_GID_SIZE];
  const char *type;
  const char *node;
  const char *node_namespace;
} ol_endpoint;

/* Called for each item of a list; nothing it is given outlives the call. */
typedef void (*ol_visit_endpoint)(void *context, const ol_endpoint *endpoint);
typedef void (*ol_visit_name)(void *context, const char *name, const char *detail);

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

/* Visits the publishers (publishers != 0) or subscriptions of a topic. */
int ol_endpoints(ol_domain *domain, const char *topic, int publishers, ol_visit_endpoint visit, void *context,
                 char *err, size_t err_len);
/* Visits the topics with their first type. */
int ol_topics(ol_domain *domain, ol_visit_name visit, void *context, char *err, size_t err_len);
/* Visits the nodes with their namespace. */
int ol_nodes(ol_domain *domain, ol_visit_name visit, void *context, char *err, size_t err_len);
/* Visits the services of a node with their first type. */
int ol_services_of(ol_domain *domain, const char *node, const char *node_namespace, ol_visit_name visit,
                   void *context, char *err, size_t err_len);

/* type_support is what the type's library hands out. */
ol_publisher *ol_publisher_open(ol_domain *domain, const char *topic, const void *type_support, const ol_qos *qos,
                                char *err, size_t err_len);
void ol_publisher_close(ol_publisher *publisher);
int ol_publisher_gid(ol_publisher *publisher, uint8_t *gid, char *err, size_t err_len);
int ol_publisher_publish(ol_publisher *publisher, const uint8_t *data, size_t bytes, char *err, size_t err_len);
int ol_publisher_assert_alive(ol_publisher *publisher, char *err, size_t err_len);
/* Waits until every matched reliable reader has everything. 1: so it is, 0: time over or not known here. */
int ol_publisher_flush(ol_publisher *publisher, int64_t timeout_ns);

/* watch_liveliness != 0: a change of liveliness ends a wait too. */
ol_subscription *ol_subscription_open(ol_domain *domain, const char *topic, const void *type_support,
                                      const ol_qos *qos, int watch_liveliness, char *err, size_t err_len);
void ol_subscription_close(ol_subscription *subscription);
/* Waits for a message, an event, ol_subscription_wake, or the end of the time. 1: woken, 0: time over. */
int ol_subscription_wait(ol_subscription *subscription, int64_t timeout_ns, char *err, size_t err_len);
/* May be called from any thread. */
int ol_subscription_wake(ol_subscription *subscription);
/* Takes one message. 1: taken, 0: there is none. */
int ol_subscription_take(ol_subscription *subscription, ol_taken *taken, char *err, size_t err_len);
/* Publishers alive after the last change of liveliness, -1 when nothing changed since the last call. */
int ol_subscription_alive(ol_subscription *subscription);
/* Samples that the middleware reports as lost since the last call. */
int ol_subscription_lost(ol_subscription *subscription);

/* Who asked, so that an answer finds its way back. */
typedef struct {
  uint8_t bytes[32];
} ol_request_id;

/* A service server; the request taken last stays inside. */
ol_server *ol_server_open(ol_domain *domain, const char *name, const void *type_support, char *err, size_t err_len);
void ol_server_close(ol_server *server);
int ol_server_wait(ol_server *server, int64_t timeout_ns, char *err, size_t err_len);
int ol_server_wake(ol_server *server);
int ol_server_take(ol_server *server, ol_request_id *id, char *err, size_t err_len);

/* A service client; the response taken last stays inside. */
ol_client *ol_client_open(ol_domain *domain, const char *name, const void *type_support, char *err, size_t err_len);
void ol_client_close(ol_client *client);
int ol_client_wait(ol_client *client, int64_t timeout_ns, char *err, size_t err_len);
int ol_client_wake(ol_client *client);
/* Sends the request that the server holds. */
int ol_client_send(ol_client *client, ol_server *server, int64_t *sequence, char *err, size_t err_len);
int ol_client_take(ol_client *client, int64_t *sequence, char *err, size_t err_len);
/* Whether the client has found its server. 1: yes, 0: no. */
int ol_client_ready(ol_client *client, char *err, size_t err_len);
/* Answers with the response that the client holds. */
int ol_server_reply(ol_server *server, const ol_request_id *id, ol_client *client, char *err, size_t err_len);

#endif
