#include "raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rcl/rcl.h>
#include <rmw/rmw.h>

struct ol_domain {
  rcl_context_t context;
  rcl_node_t node;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
};

struct ol_route {
  rcl_node_t *from_node;
  rcl_node_t *to_node;
  rcl_subscription_t subscription;
  rcl_publisher_t publisher;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
  rcl_serialized_message_t message;
};

static int fail(const char *what, char *err, size_t err_len)
{
  snprintf(err, err_len, "%s: %s", what, rcl_get_error_string().str);
  rcl_reset_error();
  return -1;
}

static rmw_time_t duration(int64_t ns)
{
  if (ns == INT64_MAX) {
    return (rmw_time_t)RMW_DURATION_INFINITE;
  }
  rmw_time_t time = {(uint64_t)ns / 1000000000u, (uint64_t)ns % 1000000000u};
  return time;
}

static int64_t nanoseconds(rmw_time_t time)
{
  if (time.sec >= 9223372036u) {
    return INT64_MAX;
  }
  return (int64_t)(time.sec * 1000000000u + time.nsec);
}

static rmw_qos_profile_t to_rmw(const ol_qos *qos)
{
  rmw_qos_profile_t out = rmw_qos_profile_default;
  out.history = (enum rmw_qos_history_policy_e)qos->history;
  out.depth = qos->depth;
  out.reliability = (enum rmw_qos_reliability_policy_e)qos->reliability;
  out.durability = (enum rmw_qos_durability_policy_e)qos->durability;
  out.deadline = duration(qos->deadline_ns);
  out.lifespan = duration(qos->lifespan_ns);
  out.liveliness = (enum rmw_qos_liveliness_policy_e)qos->liveliness;
  out.liveliness_lease_duration = duration(qos->lease_ns);
  return out;
}

static void from_rmw(const rmw_qos_profile_t *qos, ol_qos *out)
{
  out->history = (int32_t)qos->history;
  out->depth = (uint32_t)qos->depth;
  out->reliability = (int32_t)qos->reliability;
  out->durability = (int32_t)qos->durability;
  out->deadline_ns = nanoseconds(qos->deadline);
  out->lifespan_ns = nanoseconds(qos->lifespan);
  out->liveliness = (int32_t)qos->liveliness;
  out->lease_ns = nanoseconds(qos->liveliness_lease_duration);
}

static void copy_gid(const void *from, size_t size, uint8_t *to)
{
  memset(to, 0, OL_GID_SIZE);
  memcpy(to, from, size < OL_GID_SIZE ? size : OL_GID_SIZE);
}

/* A guard condition and a wait set that holds it, beside one more entity of each kind asked for. */
static int open_wait(rcl_context_t *context, rcl_guard_condition_t *wake, rcl_wait_set_t *wait_set,
                     size_t subscriptions, size_t guards)
{
  if (rcl_guard_condition_init(wake, context, rcl_guard_condition_get_default_options()) != RCL_RET_OK) {
    return -1;
  }
  return rcl_wait_set_init(wait_set, subscriptions, guards, 0, 0, 0, 0, context, rcl_get_default_allocator()) ==
                 RCL_RET_OK
             ? 0
             : -1;
}

static int wait_result(rcl_ret_t ret, char *err, size_t err_len)
{
  if (ret == RCL_RET_TIMEOUT) {
    rcl_reset_error();
    return 0;
  }
  return ret == RCL_RET_OK ? 1 : fail("cannot wait", err, err_len);
}

const char *ol_rmw_name(void)
{
  return rmw_get_implementation_identifier();
}

ol_domain *ol_domain_open(size_t domain_id, const char *node_name, const char *const *argv, int argc, char *err,
                          size_t err_len)
{
  ol_domain *domain = calloc(1, sizeof *domain);
  if (domain == NULL) {
    snprintf(err, err_len, "out of memory");
    return NULL;
  }
  domain->context = rcl_get_zero_initialized_context();
  domain->node = rcl_get_zero_initialized_node();
  domain->wake = rcl_get_zero_initialized_guard_condition();
  domain->wait_set = rcl_get_zero_initialized_wait_set();
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  rcl_ret_t ret = rcl_init_options_init(&options, rcl_get_default_allocator());
  if (ret == RCL_RET_OK) {
    ret = rcl_init_options_set_domain_id(&options, domain_id);
  }
  if (ret == RCL_RET_OK) {
    ret = rcl_init(argc, argv, &options, &domain->context);
  }
  if (ret == RCL_RET_OK) {
    rcl_node_options_t node_options = rcl_node_get_default_options();
    ret = rcl_node_init(&domain->node, node_name, "", &domain->context, &node_options);
  }
  if (ret == RCL_RET_OK) {
    ret = open_wait(&domain->context, &domain->wake, &domain->wait_set, 0, 2) == 0 ? RCL_RET_OK : RCL_RET_ERROR;
  }
  if (rcl_init_options_fini(&options) != RCL_RET_OK) {
    rcl_reset_error();
  }
  if (ret != RCL_RET_OK) {
    fail("cannot open the domain", err, err_len);
    ol_domain_close(domain);
    return NULL;
  }
  return domain;
}

void ol_domain_close(ol_domain *domain)
{
  rcl_ret_t ret = RCL_RET_OK;
  if (rcl_wait_set_is_valid(&domain->wait_set)) {
    ret |= rcl_wait_set_fini(&domain->wait_set);
  }
  ret |= rcl_guard_condition_fini(&domain->wake);
  if (rcl_node_is_valid_except_context(&domain->node)) {
    ret |= rcl_node_fini(&domain->node);
  }
  if (rcl_context_is_valid(&domain->context)) {
    ret |= rcl_shutdown(&domain->context);
    ret |= rcl_context_fini(&domain->context);
  }
  (void)ret; /* Nothing can be done about a failure on the way out. */
  rcl_reset_error();
  free(domain);
}

int ol_domain_wait_graph(ol_domain *domain, int64_t timeout_ns, char *err, size_t err_len)
{
  const rcl_guard_condition_t *graph = rcl_node_get_graph_guard_condition(&domain->node);
  if (graph == NULL || rcl_wait_set_clear(&domain->wait_set) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&domain->wait_set, graph, NULL) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&domain->wait_set, &domain->wake, NULL) != RCL_RET_OK) {
    return fail("cannot watch the graph", err, err_len);
  }
  return wait_result(rcl_wait(&domain->wait_set, timeout_ns), err, err_len);
}

int ol_domain_wake(ol_domain *domain)
{
  return rcl_trigger_guard_condition(&domain->wake) == RCL_RET_OK ? 0 : -1;
}

int ol_publishers(ol_domain *domain, const char *topic, ol_endpoint *out, size_t max, char *err, size_t err_len)
{
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rcl_topic_endpoint_info_array_t found = rcl_get_zero_initialized_topic_endpoint_info_array();
  if (rcl_get_publishers_info_by_topic(&domain->node, &allocator, topic, false, &found) != RCL_RET_OK) {
    return fail("cannot ask for publishers", err, err_len);
  }
  const size_t count = found.size;
  for (size_t i = 0; i < count && i < max; ++i) {
    const rmw_topic_endpoint_info_t *info = &found.info_array[i];
    from_rmw(&info->qos_profile, &out[i].qos);
    copy_gid(info->endpoint_gid, sizeof info->endpoint_gid, out[i].gid);
    snprintf(out[i].type, sizeof out[i].type, "%s", info->topic_type != NULL ? info->topic_type : "");
  }
  if (rcl_topic_endpoint_info_array_fini(&found, &allocator) != RCL_RET_OK) {
    return fail("cannot free the publishers", err, err_len);
  }
  return (int)count;
}

int ol_count_subscribers(ol_domain *domain, const char *topic, char *err, size_t err_len)
{
  size_t count = 0;
  if (rcl_count_subscribers(&domain->node, topic, &count) != RCL_RET_OK) {
    return fail("cannot count subscriptions", err, err_len);
  }
  return (int)count;
}

static rcl_ret_t open_ends(ol_route *route, const char *from_topic, const char *to_topic, const void *type_support,
                           const ol_qos *subscription, const ol_qos *publisher)
{
  rcl_publisher_options_t publisher_options = rcl_publisher_get_default_options();
  publisher_options.qos = to_rmw(publisher);
  rcl_ret_t ret = rcl_publisher_init(&route->publisher, route->to_node, type_support, to_topic, &publisher_options);
  if (ret == RCL_RET_OK) {
    rcl_subscription_options_t subscription_options = rcl_subscription_get_default_options();
    subscription_options.qos = to_rmw(subscription);
    subscription_options.rmw_subscription_options.ignore_local_publications = true;
    ret = rcl_subscription_init(&route->subscription, route->from_node, type_support, from_topic,
                                &subscription_options);
  }
  return ret;
}

ol_route *ol_route_open(ol_domain *from, ol_domain *to, const char *from_topic, const char *to_topic,
                        const void *type_support, const ol_qos *subscription, const ol_qos *publisher, char *err,
                        size_t err_len)
{
  ol_route *route = calloc(1, sizeof *route);
  if (route == NULL) {
    snprintf(err, err_len, "out of memory");
    return NULL;
  }
  route->from_node = &from->node;
  route->to_node = &to->node;
  route->subscription = rcl_get_zero_initialized_subscription();
  route->publisher = rcl_get_zero_initialized_publisher();
  route->wake = rcl_get_zero_initialized_guard_condition();
  route->wait_set = rcl_get_zero_initialized_wait_set();
  route->message = rmw_get_zero_initialized_serialized_message();
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  if (open_ends(route, from_topic, to_topic, type_support, subscription, publisher) != RCL_RET_OK ||
      open_wait(&from->context, &route->wake, &route->wait_set, 1, 1) != 0 ||
      rmw_serialized_message_init(&route->message, 256, &allocator) != RMW_RET_OK) {
    fail("cannot open the route", err, err_len);
    ol_route_close(route);
    return NULL;
  }
  return route;
}

void ol_route_close(ol_route *route)
{
  rcl_ret_t ret = RCL_RET_OK;
  if (rcl_wait_set_is_valid(&route->wait_set)) {
    ret |= rcl_wait_set_fini(&route->wait_set);
  }
  ret |= rcl_guard_condition_fini(&route->wake);
  if (rcl_subscription_is_valid(&route->subscription)) {
    ret |= rcl_subscription_fini(&route->subscription, route->from_node);
  }
  if (rcl_publisher_is_valid_except_context(&route->publisher)) {
    ret |= rcl_publisher_fini(&route->publisher, route->to_node);
  }
  if (route->message.allocator.allocate != NULL) {
    ret |= rmw_serialized_message_fini(&route->message);
  }
  (void)ret; /* Nothing can be done about a failure on the way out. */
  rcl_reset_error();
  free(route);
}

int ol_route_gid(ol_route *route, uint8_t *gid, char *err, size_t err_len)
{
  rmw_publisher_t *handle = rcl_publisher_get_rmw_handle(&route->publisher);
  rmw_gid_t own;
  if (handle == NULL || rmw_get_gid_for_publisher(handle, &own) != RMW_RET_OK) {
    return fail("cannot identify the publisher", err, err_len);
  }
  copy_gid(own.data, sizeof own.data, gid);
  return 0;
}

int ol_route_wait(ol_route *route, int64_t timeout_ns, char *err, size_t err_len)
{
  if (rcl_wait_set_clear(&route->wait_set) != RCL_RET_OK ||
      rcl_wait_set_add_subscription(&route->wait_set, &route->subscription, NULL) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&route->wait_set, &route->wake, NULL) != RCL_RET_OK) {
    return fail("cannot watch the route", err, err_len);
  }
  return wait_result(rcl_wait(&route->wait_set, timeout_ns), err, err_len);
}

int ol_route_wake(ol_route *route)
{
  return rcl_trigger_guard_condition(&route->wake) == RCL_RET_OK ? 0 : -1;
}

int ol_route_take(ol_route *route, ol_taken *taken, char *err, size_t err_len)
{
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  rcl_ret_t ret = rcl_take_serialized_message(&route->subscription, &route->message, &info, NULL);
  if (ret == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
    rcl_reset_error();
    return 0;
  }
  if (ret != RCL_RET_OK) {
    return fail("cannot take a message", err, err_len);
  }
  taken->bytes = route->message.buffer_length;
  taken->source_ns = info.source_timestamp;
  taken->received_ns = info.received_timestamp;
  copy_gid(info.publisher_gid.data, sizeof info.publisher_gid.data, taken->gid);
  return 1;
}

int ol_route_publish(ol_route *route, char *err, size_t err_len)
{
  if (rcl_publish_serialized_message(&route->publisher, &route->message, NULL) != RCL_RET_OK) {
    return fail("cannot publish", err, err_len);
  }
  return 0;
}
