//! Services that answer with the fields of the request, and an action that counts in Fibonacci numbers.

use std::any::Any;

use rclrs::{BeginAcceptedGoal, Node, RclrsError, RequestedGoal, TerminatedGoal};
use ros_env::test_msgs::action::{Fibonacci, Fibonacci_Feedback, Fibonacci_Result};
use ros_env::test_msgs::srv::{
    Arrays, Arrays_Request, Arrays_Response, BasicTypes, BasicTypes_Request, BasicTypes_Response,
    Empty, Empty_Request, Empty_Response,
};

macro_rules! response_of {
    ($request:ident, $response:ident { $($field:ident),* $(,)? }) => {
        $response { $($field: $request.$field),* }
    };
}

/// Opens every server; they live as long as what is returned.
pub(crate) fn all(node: &Node) -> Result<Vec<Box<dyn Any>>, RclrsError> {
    Ok(vec![
        Box::new(node.create_service::<BasicTypes, _>("interop/rust/basic_types", basic_types)?),
        Box::new(node.create_service::<Arrays, _>("interop/rust/arrays", arrays)?),
        Box::new(
            node.create_service::<Empty, _>("interop/rust/empty", |_: Empty_Request| {
                Empty_Response::default()
            })?,
        ),
        Box::new(node.create_action_server::<Fibonacci, _>("interop/rust/fibonacci", fibonacci)?),
    ])
}

/// The response with the fields of the request.
pub(crate) fn basic_types(request: BasicTypes_Request) -> BasicTypes_Response {
    response_of!(
        request,
        BasicTypes_Response {
            bool_value,
            byte_value,
            char_value,
            float32_value,
            float64_value,
            int8_value,
            uint8_value,
            int16_value,
            uint16_value,
            int32_value,
            uint32_value,
            int64_value,
            uint64_value,
            string_value,
        }
    )
}

/// The response with the fields of the request.
pub(crate) fn arrays(request: Arrays_Request) -> Arrays_Response {
    response_of!(
        request,
        Arrays_Response {
            bool_values,
            byte_values,
            char_values,
            float32_values,
            float64_values,
            int8_values,
            uint8_values,
            int16_values,
            uint16_values,
            int32_values,
            uint32_values,
            int64_values,
            uint64_values,
            string_values,
            basic_types_values,
            constants_values,
            defaults_values,
            bool_values_default,
            byte_values_default,
            char_values_default,
            float32_values_default,
            float64_values_default,
            int8_values_default,
            uint8_values_default,
            int16_values_default,
            uint16_values_default,
            int32_values_default,
            uint32_values_default,
            int64_values_default,
            uint64_values_default,
            string_values_default,
        }
    )
}

/// The first numbers of the sequence.
pub(crate) fn sequence(order: i32) -> Vec<i32> {
    let pairs = std::iter::successors(Some((1, 1)), |&(a, b): &(i32, i32)| {
        Some((b, a.checked_add(b)?))
    });
    pairs
        .map(|(a, _)| a)
        .take(usize::try_from(order).unwrap_or(0))
        .collect()
}

async fn fibonacci(goal: RequestedGoal<Fibonacci>) -> TerminatedGoal {
    let order = goal.goal().order;
    if order < 0 {
        return goal.reject();
    }
    let executing = match goal.accept().begin() {
        BeginAcceptedGoal::Execute(executing) => executing,
        BeginAcceptedGoal::Cancel(cancelling) => {
            return cancelling.cancelled_with(Fibonacci_Result::default());
        }
    };
    let sequence = sequence(order);
    for length in 1..=sequence.len() {
        executing.publish_feedback(Fibonacci_Feedback {
            sequence: sequence[..length].to_vec(),
        });
    }
    executing.succeeded_with(Fibonacci_Result { sequence })
}
