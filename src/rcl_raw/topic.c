/* Publishers and subscriptions of serialized messages.
 *
 * A subscription is told of messages by the middleware's receiving thread, which only counts them and wakes the
 * waiting one: a wait set would be built up and taken down for every message. Where the middleware cannot tell, a
 * wait set does the work.
 */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rcl/error_handling.h>
#include <rcl/event.h>
#include <rmw/rmw.h>

struct ol_publisher {
  rcl_node_t *node;
  rcl_publisher_t publisher;
};

struct ol_subscription {
  rcl_node_t *node;
  rcl_subscription_t subscription;
  rcl_event_t liveliness;
  rcl_event_t lost;
  int has_liveliness;
  int has_lost;
  int is_told; /* by callbacks; else wake and wait_set are in use */
  int told_liveliness;
  int told_lost;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t pending;
  int woken;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
  rcl_serialized_message_t message;
};

ol_publisher *ol_publisher_open(ol_domain *domain, const char *topic, const void *type_support, const ol_qos *qos,
                                char *err, size_t err_len)
{
  ol_publisher *publisher = calloc(1, sizeof *publisher);
  if (publisher == NULL) {
    snprintf(err, err_len, "out of memory");
    return NULL;
  }
  publisher->node = &domain->node;
  publisher->publisher = rcl_get_zero_initialized_publisher();
  rcl_publisher_options_t options = rcl_publisher_get_default_options();
  options.qos = ol_to_rmw(qos);
  if (rcl_publisher_init(&publisher->publisher, &domain->node, type_support, topic, &options) != RCL_RET_OK) {
    ol_fail("cannot open the publisher", err, err_len);
    free(publisher);
    return NULL;
  }
  return publisher;
}

void ol_publisher_close(ol_publisher *publisher)
{
  if (rcl_publisher_fini(&publisher->publisher, publisher->node) != RCL_RET_OK) {
    rcl_reset_error();
  }
  free(publisher);
}

int ol_publisher_gid(ol_publisher *publisher, uint8_t *gid, char *err, size_t err_len)
{
  rmw_publisher_t *handle = rcl_publisher_get_rmw_handle(&publisher->publisher);
  rmw_gid_t own;
  if (handle == NULL || rmw_get_gid_for_publisher(handle, &own) != RMW_RET_OK) {
    return ol_fail("cannot identify the publisher", err, err_len);
  }
  ol_copy_gid(own.data, sizeof own.data, gid);
  return 0;
}

int ol_publisher_publish(ol_publisher *publisher, const uint8_t *data, size_t bytes, char *err, size_t err_len)
{
  /* rcl only reads the buffer; the structure has no const form. */
  rcl_serialized_message_t message = {(uint8_t *)data, bytes, bytes, rcutils_get_default_allocator()};
  if (rcl_publish_serialized_message(&publisher->publisher, &message, NULL) != RCL_RET_OK) {
    return ol_fail("cannot publish", err, err_len);
  }
  return 0;
}

int ol_publisher_assert_alive(ol_publisher *publisher, char *err, size_t err_len)
{
  if (rcl_publisher_assert_liveliness(&publisher->publisher) != RCL_RET_OK) {
    return ol_fail("cannot assert liveliness", err, err_len);
  }
  return 0;
}

int ol_publisher_flush(ol_publisher *publisher, int64_t timeout_ns)
{
  if (rcl_publisher_wait_for_all_acked(&publisher->publisher, timeout_ns) != RCL_RET_OK) {
    rcl_reset_error();
    return 0;
  }
  return 1;
}

/* Events are a help, not a need: a middleware that lacks one has it left out. */
static int open_event(rcl_event_t *event, const rcl_subscription_t *subscription, rcl_subscription_event_type_t kind)
{
  *event = rcl_get_zero_initialized_event();
  if (rcl_subscription_event_init(event, subscription, kind) != RCL_RET_OK) {
    rcl_reset_error();
    return 0;
  }
  return 1;
}

static void on_message(const void *user_data, size_t count)
{
  ol_subscription *sub = (ol_subscription *)user_data;
  pthread_mutex_lock(&sub->lock);
  sub->pending += count;
  pthread_cond_signal(&sub->changed);
  pthread_mutex_unlock(&sub->lock);
}

static void wake(ol_subscription *sub)
{
  pthread_mutex_lock(&sub->lock);
  sub->woken = 1;
  pthread_cond_signal(&sub->changed);
  pthread_mutex_unlock(&sub->lock);
}

static void on_liveliness(const void *user_data, size_t count)
{
  ol_subscription *sub = (ol_subscription *)user_data;
  (void)count;
  pthread_mutex_lock(&sub->lock);
  sub->told_liveliness = 1;
  sub->woken = 1;
  pthread_cond_signal(&sub->changed);
  pthread_mutex_unlock(&sub->lock);
}

static void on_lost(const void *user_data, size_t count)
{
  ol_subscription *sub = (ol_subscription *)user_data;
  (void)count;
  pthread_mutex_lock(&sub->lock);
  sub->told_lost = 1;
  pthread_mutex_unlock(&sub->lock);
}

/* Whether there is an event to take. One that has not been told of is not asked for: rmw_fastrtps would then ask Fast
 * DDS under its own lock, while a thread of Fast DDS that reports an event holds the reader's and waits for that one. */
static int has_news(ol_subscription *sub, int *told)
{
  if (!sub->is_told) {
    return 1;
  }
  pthread_mutex_lock(&sub->lock);
  const int news = *told;
  *told = 0;
  pthread_mutex_unlock(&sub->lock);
  return news;
}

/* Has the middleware call back on news, or not at all. */
static int open_callbacks(ol_subscription *sub)
{
  if (rcl_subscription_set_on_new_message_callback(&sub->subscription, on_message, sub) != RCL_RET_OK) {
    rcl_reset_error();
    return 0;
  }
  if (sub->has_liveliness && rcl_event_set_callback(&sub->liveliness, on_liveliness, sub) != RCL_RET_OK) {
    (void)!rcl_subscription_set_on_new_message_callback(&sub->subscription, NULL, NULL);
    rcl_reset_error();
    return 0;
  }
  if (sub->has_lost && rcl_event_set_callback(&sub->lost, on_lost, sub) != RCL_RET_OK) {
    rcl_reset_error();
  }
  return 1;
}

static void close_callbacks(ol_subscription *sub)
{
  (void)!rcl_subscription_set_on_new_message_callback(&sub->subscription, NULL, NULL);
  if (sub->has_liveliness) {
    (void)!rcl_event_set_callback(&sub->liveliness, NULL, NULL);
  }
  if (sub->has_lost) {
    (void)!rcl_event_set_callback(&sub->lost, NULL, NULL);
  }
  rcl_reset_error();
}

static int open_lock(ol_subscription *sub)
{
  pthread_condattr_t attributes;
  if (pthread_mutex_init(&sub->lock, NULL) != 0 || pthread_condattr_init(&attributes) != 0) {
    return -1;
  }
  const int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) != 0 ||
                     pthread_cond_init(&sub->changed, &attributes) != 0;
  pthread_condattr_destroy(&attributes);
  return failed ? -1 : 0;
}

static rcl_ret_t open_parts(ol_subscription *sub, ol_domain *domain, const char *topic, const void *type_support,
                            const ol_qos *qos, int watch_liveliness)
{
  rcl_subscription_options_t options = rcl_subscription_get_default_options();
  options.qos = ol_to_rmw(qos);
  rcl_ret_t ret = rcl_subscription_init(&sub->subscription, &domain->node, type_support, topic, &options);
  if (ret != RCL_RET_OK) {
    return ret;
  }
  sub->has_liveliness =
    watch_liveliness && open_event(&sub->liveliness, &sub->subscription, RCL_SUBSCRIPTION_LIVELINESS_CHANGED);
  sub->has_lost = open_event(&sub->lost, &sub->subscription, RCL_SUBSCRIPTION_MESSAGE_LOST);
  sub->is_told = open_callbacks(sub);
  if (!sub->is_told) {
    ret = ol_open_wait(&domain->context, &sub->wake, &sub->wait_set, 1, 1, 0, 0, (size_t)sub->has_liveliness);
  }
  if (ret == RCL_RET_OK) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    ret = rmw_serialized_message_init(&sub->message, 256, &allocator) == RMW_RET_OK ? RCL_RET_OK : RCL_RET_ERROR;
  }
  return ret;
}

ol_subscription *ol_subscription_open(ol_domain *domain, const char *topic, const void *type_support,
                                      const ol_qos *qos, int watch_liveliness, char *err, size_t err_len)
{
  ol_subscription *sub = calloc(1, sizeof *sub);
  if (sub == NULL || open_lock(sub) != 0) {
    snprintf(err, err_len, "out of memory");
    free(sub);
    return NULL;
  }
  sub->node = &domain->node;
  sub->subscription = rcl_get_zero_initialized_subscription();
  sub->wake = rcl_get_zero_initialized_guard_condition();
  sub->wait_set = rcl_get_zero_initialized_wait_set();
  sub->message = rmw_get_zero_initialized_serialized_message();
  if (open_parts(sub, domain, topic, type_support, qos, watch_liveliness) != RCL_RET_OK) {
    ol_fail("cannot open the subscription", err, err_len);
    ol_subscription_close(sub);
    return NULL;
  }
  return sub;
}

void ol_subscription_close(ol_subscription *sub)
{
  rcl_ret_t ret = RCL_RET_OK;
  if (sub->is_told) {
    close_callbacks(sub);
  } else {
    ol_close_wait(&sub->wake, &sub->wait_set);
  }
  if (sub->has_liveliness) {
    ret |= rcl_event_fini(&sub->liveliness);
  }
  if (sub->has_lost) {
    ret |= rcl_event_fini(&sub->lost);
  }
  if (rcl_subscription_is_valid(&sub->subscription)) {
    ret |= rcl_subscription_fini(&sub->subscription, sub->node);
  }
  if (sub->message.allocator.allocate != NULL) {
    ret |= rmw_serialized_message_fini(&sub->message);
  }
  (void)ret; /* Nothing can be done about a failure on the way out. */
  rcl_reset_error();
  pthread_cond_destroy(&sub->changed);
  pthread_mutex_destroy(&sub->lock);
  free(sub);
}

static int wait_to_be_told(ol_subscription *sub, int64_t timeout_ns)
{
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += timeout_ns / 1000000000;
  end.tv_nsec += timeout_ns % 1000000000;
  if (end.tv_nsec >= 1000000000) {
    end.tv_sec += 1;
    end.tv_nsec -= 1000000000;
  }
  pthread_mutex_lock(&sub->lock);
  int late = 0;
  while (sub->pending == 0 && !sub->woken && !late) {
    late = pthread_cond_timedwait(&sub->changed, &sub->lock, &end) != 0;
  }
  const int told = sub->pending > 0 || sub->woken;
  sub->pending = 0;
  sub->woken = 0;
  pthread_mutex_unlock(&sub->lock);
  return told;
}

int ol_subscription_wait(ol_subscription *sub, int64_t timeout_ns, char *err, size_t err_len)
{
  if (sub->is_told) {
    return wait_to_be_told(sub, timeout_ns);
  }
  if (rcl_wait_set_clear(&sub->wait_set) != RCL_RET_OK ||
      rcl_wait_set_add_subscription(&sub->wait_set, &sub->subscription, NULL) != RCL_RET_OK ||
      rcl_wait_set_add_guard_condition(&sub->wait_set, &sub->wake, NULL) != RCL_RET_OK ||
      (sub->has_liveliness && rcl_wait_set_add_event(&sub->wait_set, &sub->liveliness, NULL) != RCL_RET_OK)) {
    return ol_fail("cannot watch the subscription", err, err_len);
  }
  return ol_wait_result(rcl_wait(&sub->wait_set, timeout_ns), err, err_len);
}

int ol_subscription_wake(ol_subscription *sub)
{
  if (sub->is_told) {
    wake(sub);
    return 0;
  }
  return rcl_trigger_guard_condition(&sub->wake) == RCL_RET_OK ? 0 : -1;
}

int ol_subscription_take(ol_subscription *sub, ol_taken *taken, char *err, size_t err_len)
{
  rmw_message_info_t info = rmw_get_zero_initialized_message_info();
  const rcl_ret_t ret = rcl_take_serialized_message(&sub->subscription, &sub->message, &info, NULL);
  if (ret == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
    rcl_reset_error();
    return 0;
  }
  if (ret != RCL_RET_OK) {
    return ol_fail("cannot take a message", err, err_len);
  }
  taken->data = sub->message.buffer;
  taken->bytes = sub->message.buffer_length;
  taken->source_ns = info.source_timestamp;
  taken->received_ns = info.received_timestamp;
  ol_copy_gid(info.publisher_gid.data, sizeof info.publisher_gid.data, taken->gid);
  return 1;
}

int ol_subscription_alive(ol_subscription *sub)
{
  rmw_liveliness_changed_status_t status = {0};
  if (!sub->has_liveliness || !has_news(sub, &sub->told_liveliness) ||
      rcl_take_event(&sub->liveliness, &status) != RCL_RET_OK) {
    rcl_reset_error();
    return -1;
  }
  return status.alive_count_change == 0 && status.not_alive_count_change == 0 ? -1 : status.alive_count;
}

int ol_subscription_lost(ol_subscription *sub)
{
  rmw_message_lost_status_t status = {0};
  if (!sub->has_lost || !has_news(sub, &sub->told_lost) || rcl_take_event(&sub->lost, &status) != RCL_RET_OK) {
    rcl_reset_error();
    return 0;
  }
  return (int)status.total_count_change;
}
