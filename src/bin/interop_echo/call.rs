//! Calls the services and the action that the Python half serves, and compares what they answer.

use anyhow::{Context as _, Result, ensure};
use rclrs::{GoalStatusCode, Node};
use ros_env::test_msgs::action::{Fibonacci, Fibonacci_Goal};
use ros_env::test_msgs::msg;
use ros_env::test_msgs::srv::{
    Arrays, Arrays_Request, BasicTypes, BasicTypes_Request, Empty, Empty_Request, Empty_Response,
};
use rosidl_runtime_rs::Service;

use super::serve;

/// Makes every call, one after the other.
pub(crate) async fn all(node: &Node) -> Result<()> {
    let request = basic_types();
    let expected = serve::basic_types(request.clone());
    call::<BasicTypes>(node, "interop/python/basic_types", request, expected).await?;
    let request = arrays();
    let expected = serve::arrays(request.clone());
    call::<Arrays>(node, "interop/python/arrays", request, expected).await?;
    call::<Empty>(
        node,
        "interop/python/empty",
        Empty_Request::default(),
        Empty_Response::default(),
    )
    .await?;
    fibonacci(node).await
}

async fn call<S: Service>(
    node: &Node,
    name: &str,
    request: S::Request,
    expected: S::Response,
) -> Result<()>
where
    S::Response: PartialEq,
{
    let client = node.create_client::<S>(name)?;
    client.notify_on_service_ready().await?;
    let response: S::Response = client.call(&request)?.await?;
    ensure!(
        response == expected,
        "service {name} answered {response:?}, expected {expected:?}"
    );
    Ok(())
}

fn basic_types() -> BasicTypes_Request {
    BasicTypes_Request {
        bool_value: true,
        byte_value: 255,
        char_value: 7,
        float32_value: -1.5,
        float64_value: 1e300,
        int8_value: i8::MIN,
        uint8_value: u8::MAX,
        int16_value: i16::MIN,
        uint16_value: u16::MAX,
        int32_value: i32::MIN,
        uint32_value: u32::MAX,
        int64_value: i64::MIN,
        uint64_value: u64::MAX,
        string_value: "ψ from Rust".into(),
    }
}

fn arrays() -> Arrays_Request {
    let basic = |uint16_value| msg::BasicTypes {
        uint16_value,
        ..msg::BasicTypes::default()
    };
    Arrays_Request {
        string_values: ["a".into(), String::new(), "ψ".into()],
        int32_values: [i32::MIN, 0, i32::MAX],
        basic_types_values: [basic(1), basic(2), basic(3)],
        ..Arrays_Request::default()
    }
}

async fn fibonacci(node: &Node) -> Result<()> {
    let name = "interop/python/fibonacci";
    let client = node.create_action_client::<Fibonacci>(name)?;
    client.notify_on_server_ready().await?;
    let goal = client
        .request_goal(Fibonacci_Goal { order: 8 })
        .await
        .with_context(|| format!("action {name} refused the goal"))?;
    let (status, result) = goal.result.await;
    ensure!(
        status == GoalStatusCode::Succeeded && result.sequence == serve::sequence(8),
        "action {name} ended with {status:?} and {result:?}"
    );
    Ok(())
}
