"""Writes services and actions as Rust: the marker types that client libraries are generic over. The messages
they consist of are written elsewhere; `here` is the path of the module that holds them.
"""
from __future__ import annotations

from rosidl_parser.definition import Action, Message, Service

from rust_types import RT


def _marker(kind: str, group: str, package: str, name: str) -> str:
    """The struct and the C function that returns its type support."""
    support = f"rosidl_typesupport_c__get_{kind}_type_support_handle__{package}__{group}__{name}"
    return f"""
#[link(name = "{package}__rosidl_typesupport_c")]
extern "C" {{
    fn {support}() -> *const std::ffi::c_void;
}}
/// The {kind} `{package}/{group}/{name}`.
#[allow(non_camel_case_types)]
pub struct {name};
"""


def _get_type_support(kind: str, group: str, package: str, name: str) -> str:
    return f"""    fn get_type_support() -> *const std::ffi::c_void {{
        // SAFETY: the function has no preconditions.
        unsafe {{ rosidl_typesupport_c__get_{kind}_type_support_handle__{package}__{group}__{name}() }}
    }}
"""


def service(package: str, group: str, name: str, here: str) -> str:
    """A service type."""
    return f"""{_marker("service", group, package, name)}impl {RT}::Service for {name} {{
    type Request = {here}::{name}_Request;
    type Response = {here}::{name}_Response;
{_get_type_support("service", group, package, name)}}}
"""


def action_messages(action: Action) -> list[Message]:
    """Every message of an action, those of its two services included."""
    return [action.goal, action.result, action.feedback, action.feedback_message,
            action.send_goal_service.request_message, action.send_goal_service.response_message,
            action.get_result_service.request_message, action.get_result_service.response_message]


def action_services(action: Action) -> list[Service]:
    """The two services that belong to one action alone; cancelling is common to all."""
    return [action.send_goal_service, action.get_result_service]


def action(package: str, name: str) -> str:
    """An action type, which exists on the idiomatic side only."""
    here = f"crate::{package}::action"
    rmw = f"{here}::rmw::{name}"
    uuid = "crate::unique_identifier_msgs::msg::rmw::UUID"
    return f"""{_marker("action", "action", package, name)}impl {RT}::Action for {name} {{
    type Goal = {here}::{name}_Goal;
    type Result = {here}::{name}_Result;
    type Feedback = {here}::{name}_Feedback;
    type FeedbackMessage = {here}::{name}_FeedbackMessage;
    type SendGoalService = {here}::{name}_SendGoal;
    type CancelGoalService = crate::action_msgs::srv::rmw::CancelGoal;
    type GetResultService = {here}::{name}_GetResult;
{_get_type_support("action", "action", package, name)}    fn create_goal_request(goal_id: &[u8; 16], goal: {rmw}_Goal) -> {rmw}_SendGoal_Request {{
        {rmw}_SendGoal_Request {{ goal_id: {uuid} {{ uuid: *goal_id }}, goal }}
    }}
    fn split_goal_request(request: {rmw}_SendGoal_Request) -> ([u8; 16], {rmw}_Goal) {{
        (request.goal_id.uuid, request.goal)
    }}
    fn create_goal_response(accepted: bool, (sec, nanosec): (i32, u32)) -> {rmw}_SendGoal_Response {{
        let stamp = crate::builtin_interfaces::msg::rmw::Time {{ sec, nanosec }};
        {rmw}_SendGoal_Response {{ accepted, stamp }}
    }}
    fn get_goal_response_accepted(response: &{rmw}_SendGoal_Response) -> bool {{
        response.accepted
    }}
    fn get_goal_response_stamp(response: &{rmw}_SendGoal_Response) -> (i32, u32) {{
        (response.stamp.sec, response.stamp.nanosec)
    }}
    fn create_feedback_message(goal_id: &[u8; 16], feedback: {rmw}_Feedback) -> {rmw}_FeedbackMessage {{
        {rmw}_FeedbackMessage {{ goal_id: {uuid} {{ uuid: *goal_id }}, feedback }}
    }}
    fn split_feedback_message(feedback: {rmw}_FeedbackMessage) -> ([u8; 16], {rmw}_Feedback) {{
        (feedback.goal_id.uuid, feedback.feedback)
    }}
    fn create_result_request(goal_id: &[u8; 16]) -> {rmw}_GetResult_Request {{
        {rmw}_GetResult_Request {{ goal_id: {uuid} {{ uuid: *goal_id }} }}
    }}
    fn get_result_request_uuid(request: &{rmw}_GetResult_Request) -> &[u8; 16] {{
        &request.goal_id.uuid
    }}
    fn create_result_response(status: i8, result: {rmw}_Result) -> {rmw}_GetResult_Response {{
        {rmw}_GetResult_Response {{ status, result }}
    }}
    fn split_result_response(response: {rmw}_GetResult_Response) -> (i8, {rmw}_Result) {{
        (response.status, response.result)
    }}
}}
"""
