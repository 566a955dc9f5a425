/* What the C files of this folder share. */
#ifndef OPENLINK_COMMON_H
#define OPENLINK_COMMON_H

#include "raw.h"

#include <rcl/rcl.h>

struct ol_domain {
  rcl_context_t context;
  rcl_node_t node;
  rcl_guard_condition_t wake;
  rcl_wait_set_t wait_set;
};

/* Writes rcl's reason behind what was tried; returns -1. */
int ol_fail(const char *what, char *err, size_t err_len);
/* Makes a guard condition and a wait set that holds it, beside so many more entities of each kind. */
rcl_ret_t ol_open_wait(rcl_context_t *context, rcl_guard_condition_t *wake, rcl_wait_set_t *wait_set,
                       size_t subscriptions, size_t guards, size_t clients, size_t services, size_t events);
void ol_close_wait(rcl_guard_condition_t *wake, rcl_wait_set_t *wait_set);
/* 1 for a wait that was ended, 0 for one whose time is over, -1 with a reason for a failure. */
int ol_wait_result(rcl_ret_t ret, char *err, size_t err_len);
void ol_from_rmw(const rmw_qos_profile_t *qos, ol_qos *out);
rmw_qos_profile_t ol_to_rmw(const ol_qos *qos);
void ol_copy_gid(const void *from, size_t size, uint8_t *to);

#endif
