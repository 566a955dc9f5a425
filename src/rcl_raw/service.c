/* Service servers and clients of a type known by name only: requests and responses stay in memory as the type's
 * own library lays them out, and are never looked into. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rcl/error_handling.h>
#include <rcl/graph.h>
#include <rosidl_typesupport_introspection_c/identifier.h>
#include <rosidl_typesupport_introspection_c/service_introspection.h>

typedef rosidl_typesupport_introspection_c__ServiceMembers service_members;
typedef rosidl_typesupport_introspection_c__MessageMembers message_members;

/* Requests or responses that wait at most; ROS' default of 10 overflows when many clients share one server. */
#define CALLS 256

struct ol_server {
  rcl_node_t *node;
  rcl_service_t service;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
  const message_members *members;
  void *request;
};

struct ol_client {
  rcl_node_t *node;
  rcl_client_t client;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
  const message_members *members;
  void *response;
};

_Static_assert(sizeof(rmw_request_id_t) <= sizeof(ol_request_id), "a request's identity must fit");

static const service_members *members_of(const void *type_support, char *err, size_t err_len)
{
  const rosidl_service_type_support_t *service = type_support;
  const rosidl_service_type_support_t *found =
    get_service_typesupport_handle(service, rosidl_typesupport_introspection_c__identifier);
  if (found == NULL) {
    ol_fail("the type has no introspection library", err, err_len);
    return NULL;
  }
  return found->data;
}

static void *new_message(const message_members *members)
{
  void *message = calloc(1, members->size_of_);
  if (message != NULL) {
    members->init_function(message, ROSIDL_RUNTIME_C_MSG_INIT_ALL);
  }
  return message;
}

static void free_message(const message_members *members, void *message)
{
  if (message != NULL) {
    members->fini_function(message);
    free(message);
  }
}

/* Back to an empty message, so that nothing of the last one remains. */
static void reset_message(const message_members *members, void *message)
{
  members->fini_function(message);
  memset(message, 0, members->size_of_);
  members->init_function(message, ROSIDL_RUNTIME_C_MSG_INIT_ALL);
}

ol_server *ol_server_open(ol_domain *domain, const char *name, const void *type_support, char *err, size_t err_len)
{
  const service_members *members = members_of(type_support, err, err_len);
  ol_server *server = members != NULL ? calloc(1, sizeof *server) : NULL;
  if (server == NULL) {
    return NULL;
  }
  server->node = &domain->node;
  server->service = rcl_get_zero_initialized_service();
  server->wake = rcl_get_zero_initialized_guard_condition();
  server->wait_set = rcl_get_zero_initialized_wait_set();
  server->members = members->request_members_;
  server->request = new_message(server->members);
  rcl_service_options_t options = rcl_service_get_default_options();
  options.qos.depth = CALLS;
  if (server->request == NULL ||
      rcl_service_init(&server->service, server->node, type_support, name, &options) != RCL_RET_OK ||
      ol_open_wait(&domain->context, &server->wake, &server->wait_set, 0, 1, 0, 1, 0) != RCL_RET_OK) {
    ol_fail("cannot open the service", err, err_len);
    ol_server_close(server);
    return NULL;
  }
  return server;
}

void ol_server_close(ol_server *server)
{
  ol_close_wait(&server->wake, &server->wait_set);
  if (rcl_service_is_valid(&server->service) && rcl_service_fini(&server->service, server->node) != RCL_RET_OK) {
    rcl_reset_error();
  }
  rcl_reset_error();
  free_message(server->members, server->request);
  free(server);
}

int ol_server_wait(ol_server *server, int64_t timeout_ns, char *err, size_t err_len)
{
  if (rcl_wait_set_clear(&server->wait_set) != RCL_RET_OK ||
      rcl_wait_set_add_service(&server->wait_set, &server->service, NULL) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&server->wait_set, &server->wake, NULL) != RCL_RET_OK) {
    return ol_fail("cannot watch the service", err, err_len);
  }
  return ol_wait_result(rcl_wait(&server->wait_set, timeout_ns), err, err_len);
}

int ol_server_wake(ol_server *server)
{
  return rcl_trigger_guard_condition(&server->wake) == RCL_RET_OK ? 0 : -1;
}

int ol_server_take(ol_server *server, ol_request_id *id, char *err, size_t err_len)
{
  rmw_request_id_t header;
  memset(&header, 0, sizeof header);
  reset_message(server->members, server->request);
  const rcl_ret_t ret = rcl_take_request(&server->service, &header, server->request);
  if (ret == RCL_RET_SERVICE_TAKE_FAILED) {
    rcl_reset_error();
    return 0;
  }
  if (ret != RCL_RET_OK) {
    return ol_fail("cannot take a request", err, err_len);
  }
  memset(id, 0, sizeof *id);
  memcpy(id->bytes, &header, sizeof header);
  return 1;
}

ol_client *ol_client_open(ol_domain *domain, const char *name, const void *type_support, char *err, size_t err_len)
{
  const service_members *members = members_of(type_support, err, err_len);
  ol_client *client = members != NULL ? calloc(1, sizeof *client) : NULL;
  if (client == NULL) {
    return NULL;
  }
  client->node = &domain->node;
  client->client = rcl_get_zero_initialized_client();
  client->wake = rcl_get_zero_initialized_guard_condition();
  client->wait_set = rcl_get_zero_initialized_wait_set();
  client->members = members->response_members_;
  client->response = new_message(client->members);
  rcl_client_options_t options = rcl_client_get_default_options();
  options.qos.depth = CALLS;
  if (client->response == NULL ||
      rcl_client_init(&client->client, client->node, type_support, name, &options) != RCL_RET_OK ||
      ol_open_wait(&domain->context, &client->wake, &client->wait_set, 0, 1, 1, 0, 0) != RCL_RET_OK) {
    ol_fail("cannot open the client", err, err_len);
    ol_client_close(client);
    return NULL;
  }
  return client;
}

void ol_client_close(ol_client *client)
{
  ol_close_wait(&client->wake, &client->wait_set);
  if (rcl_client_is_valid(&client->client) && rcl_client_fini(&client->client, client->node) != RCL_RET_OK) {
    rcl_reset_error();
  }
  rcl_reset_error();
  free_message(client->members, client->response);
  free(client);
}

int ol_client_wait(ol_client *client, int64_t timeout_ns, char *err, size_t err_len)
{
  if (rcl_wait_set_clear(&client->wait_set) != RCL_RET_OK ||
      rcl_wait_set_add_client(&client->wait_set, &client->client, NULL) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&client->wait_set, &client->wake, NULL) != RCL_RET_OK) {
    return ol_fail("cannot watch the client", err, err_len);
  }
  return ol_wait_result(rcl_wait(&client->wait_set, timeout_ns), err, err_len);
}

int ol_client_wake(ol_client *client)
{
  return rcl_trigger_guard_condition(&client->wake) == RCL_RET_OK ? 0 : -1;
}

int ol_client_send(ol_client *client, ol_server *server, int64_t *sequence, char *err, size_t err_len)
{
  if (rcl_send_request(&client->client, server->request, sequence) != RCL_RET_OK) {
    return ol_fail("cannot send the request", err, err_len);
  }
  return 0;
}

int ol_client_take(ol_client *client, int64_t *sequence, char *err, size_t err_len)
{
  rmw_request_id_t header;
  memset(&header, 0, sizeof header);
  reset_message(client->members, client->response);
  const rcl_ret_t ret = rcl_take_response(&client->client, &header, client->response);
  if (ret == RCL_RET_CLIENT_TAKE_FAILED) {
    rcl_reset_error();
    return 0;
  }
  if (ret != RCL_RET_OK) {
    return ol_fail("cannot take a response", err, err_len);
  }
  *sequence = header.sequence_number;
  return 1;
}

int ol_client_ready(ol_client *client, char *err, size_t err_len)
{
  bool ready = false;
  if (rcl_service_server_is_available(client->node, &client->client, &ready) != RCL_RET_OK) {
    return ol_fail("cannot look for the server", err, err_len);
  }
  return ready ? 1 : 0;
}

int ol_server_reply(ol_server *server, const ol_request_id *id, ol_client *client, char *err, size_t err_len)
{
  rmw_request_id_t header;
  memcpy(&header, id->bytes, sizeof header);
  if (rcl_send_response(&server->service, &header, client->response) != RCL_RET_OK) {
    return ol_fail("cannot send the response", err, err_len);
  }
  return 0;
}
