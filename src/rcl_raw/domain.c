/* Contexts and nodes, their graph, and what the other files share. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rmw/rmw.h>

int ol_fail(const char *what, char *err, size_t err_len)
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

rmw_qos_profile_t ol_to_rmw(const ol_qos *qos)
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

void ol_from_rmw(const rmw_qos_profile_t *qos, ol_qos *out)
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

void ol_copy_gid(const void *from, size_t size, uint8_t *to)
{
  memset(to, 0, OL_GID_SIZE);
  memcpy(to, from, size < OL_GID_SIZE ? size : OL_GID_SIZE);
}

rcl_ret_t ol_open_wait(rcl_context_t *context, rcl_guard_condition_t *wake, rcl_wait_set_t *wait_set,
                       size_t subscriptions, size_t guards, size_t clients, size_t services, size_t events)
{
  rcl_ret_t ret = rcl_guard_condition_init(wake, context, rcl_guard_condition_get_default_options());
  if (ret == RCL_RET_OK) {
    ret = rcl_wait_set_init(wait_set, subscriptions, guards, 0, clients, services, events, context,
                            rcl_get_default_allocator());
  }
  return ret;
}

void ol_close_wait(rcl_guard_condition_t *wake, rcl_wait_set_t *wait_set)
{
  if (rcl_wait_set_is_valid(wait_set) && rcl_wait_set_fini(wait_set) != RCL_RET_OK) {
    rcl_reset_error();
  }
  if (rcl_guard_condition_fini(wake) != RCL_RET_OK) {
    rcl_reset_error();
  }
}

int ol_wait_result(rcl_ret_t ret, char *err, size_t err_len)
{
  if (ret == RCL_RET_TIMEOUT) {
    rcl_reset_error();
    return 0;
  }
  return ret == RCL_RET_OK ? 1 : ol_fail("cannot wait", err, err_len);
}

const char *ol_rmw_name(void)
{
  return rmw_get_implementation_identifier();
}

static rcl_ret_t open_node(ol_domain *domain, size_t domain_id, const char *node_name, const char *const *argv,
                           int argc, rcl_init_options_t *options)
{
  rcl_ret_t ret = rcl_init_options_init(options, rcl_get_default_allocator());
  if (ret == RCL_RET_OK) {
    ret = rcl_init_options_set_domain_id(options, domain_id);
  }
  if (ret == RCL_RET_OK) {
    ret = rcl_init(argc, argv, options, &domain->context);
  }
  if (ret == RCL_RET_OK) {
    rcl_node_options_t node_options = rcl_node_get_default_options();
    ret = rcl_node_init(&domain->node, node_name, "", &domain->context, &node_options);
  }
  if (ret == RCL_RET_OK) {
    ret = ol_open_wait(&domain->context, &domain->wake, &domain->wait_set, 0, 2, 0, 0, 0);
  }
  return ret;
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
  const rcl_ret_t ret = open_node(domain, domain_id, node_name, argv, argc, &options);
  if (ret != RCL_RET_OK) {
    ol_fail("cannot open the domain", err, err_len);
  }
  if (rcl_init_options_fini(&options) != RCL_RET_OK) {
    rcl_reset_error();
  }
  if (ret != RCL_RET_OK) {
    ol_domain_close(domain);
    return NULL;
  }
  return domain;
}

void ol_domain_close(ol_domain *domain)
{
  rcl_ret_t ret = RCL_RET_OK;
  ol_close_wait(&domain->wake, &domain->wait_set);
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
    return ol_fail("cannot watch the graph", err, err_len);
  }
  return ol_wait_result(rcl_wait(&domain->wait_set, timeout_ns), err, err_len);
}

int ol_domain_wake(ol_domain *domain)
{
  return rcl_trigger_guard_condition(&domain->wake) == RCL_RET_OK ? 0 : -1;
}

static const char *text(const char *maybe)
{
  return maybe != NULL ? maybe : "";
}

int ol_endpoints(ol_domain *domain, const char *topic, int publishers, ol_visit_endpoint visit, void *context,
                 char *err, size_t err_len)
{
  rcutils_allocator_t allocator = rcutils_get_default_allocator();
  rcl_topic_endpoint_info_array_t found = rcl_get_zero_initialized_topic_endpoint_info_array();
  const rcl_ret_t ret =
    publishers != 0 ? rcl_get_publishers_info_by_topic(&domain->node, &allocator, topic, false, &found)
                    : rcl_get_subscriptions_info_by_topic(&domain->node, &allocator, topic, false, &found);
  if (ret != RCL_RET_OK) {
    return ol_fail("cannot ask for the endpoints", err, err_len);
  }
  for (size_t i = 0; i < found.size; ++i) {
    const rmw_topic_endpoint_info_t *info = &found.info_array[i];
    ol_endpoint endpoint;
    ol_from_rmw(&info->qos_profile, &endpoint.qos);
    ol_copy_gid(info->endpoint_gid, sizeof info->endpoint_gid, endpoint.gid);
    endpoint.type = text(info->topic_type);
    endpoint.node = text(info->node_name);
    endpoint.node_namespace = text(info->node_namespace);
    visit(context, &endpoint);
  }
  if (rcl_topic_endpoint_info_array_fini(&found, &allocator) != RCL_RET_OK) {
    return ol_fail("cannot free the endpoints", err, err_len);
  }
  return 0;
}

/* Visits names with their first type, and frees them. */
static int visit_names(rcl_names_and_types_t *found, ol_visit_name visit, void *context, char *err, size_t err_len)
{
  for (size_t i = 0; i < found->names.size; ++i) {
    visit(context, found->names.data[i], found->types[i].size > 0 ? found->types[i].data[0] : "");
  }
  return rcl_names_and_types_fini(found) == RCL_RET_OK ? 0 : ol_fail("cannot free the names", err, err_len);
}

int ol_topics(ol_domain *domain, ol_visit_name visit, void *context, char *err, size_t err_len)
{
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_names_and_types_t found = rcl_get_zero_initialized_names_and_types();
  if (rcl_get_topic_names_and_types(&domain->node, &allocator, false, &found) != RCL_RET_OK) {
    return ol_fail("cannot list the topics", err, err_len);
  }
  return visit_names(&found, visit, context, err, err_len);
}

int ol_services_of(ol_domain *domain, const char *node, const char *node_namespace, ol_visit_name visit,
                   void *context, char *err, size_t err_len)
{
  rcl_allocator_t allocator = rcl_get_default_allocator();
  rcl_names_and_types_t found = rcl_get_zero_initialized_names_and_types();
  const rcl_ret_t ret =
    rcl_get_service_names_and_types_by_node(&domain->node, &allocator, node, node_namespace, &found);
  if (ret == RCL_RET_NODE_NAME_NON_EXISTENT) {
    rcl_reset_error();
    return 0;
  }
  if (ret != RCL_RET_OK) {
    return ol_fail("cannot list the services", err, err_len);
  }
  return visit_names(&found, visit, context, err, err_len);
}

int ol_nodes(ol_domain *domain, ol_visit_name visit, void *context, char *err, size_t err_len)
{
  rcutils_string_array_t names = rcutils_get_zero_initialized_string_array();
  rcutils_string_array_t namespaces = rcutils_get_zero_initialized_string_array();
  if (rcl_get_node_names(&domain->node, rcl_get_default_allocator(), &names, &namespaces) != RCL_RET_OK) {
    return ol_fail("cannot list the nodes", err, err_len);
  }
  for (size_t i = 0; i < names.size && i < namespaces.size; ++i) {
    visit(context, names.data[i], namespaces.data[i]);
  }
  if (rcutils_string_array_fini(&names) != RCUTILS_RET_OK ||
      rcutils_string_array_fini(&namespaces) != RCUTILS_RET_OK) {
    return ol_fail("cannot free the nodes", err, err_len);
  }
  return 0;
}
