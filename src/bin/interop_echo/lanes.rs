//! Pairs of topics `interop/<lane>/<package>/msg/<Type>/{in,out}`: what comes in is answered on the way out. Each
//! lane takes a message through another part of the generated code.

use rclrs::{IntoPrimitiveOptions as _, Node, PrimitiveOptions, Publisher, RclrsError};
use rosidl_runtime_rs::{Message, RmwMessage};

/// The topics of one process; they live as long as this does.
pub(crate) struct Lanes {
    node: Node,
    subscriptions: Vec<Box<dyn std::any::Any>>,
}

impl Lanes {
    pub(crate) const fn new(node: Node) -> Self {
        Self {
            node,
            subscriptions: Vec::new(),
        }
    }

    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Echoes a type three times: published by value, published by reference, and never leaving the C layout.
    pub(crate) fn echo<T: Message>(&mut self) -> Result<(), RclrsError> {
        self.add::<T>("owned", |out, message| out.publish(message))?;
        self.add::<T>("borrowed", |out, message| out.publish(&message))?;
        self.add::<T::RmwMsg>("rmw", |out, message| out.publish(message))
    }

    /// Answers with `expected` when that is what came in, and stays silent with a line on standard error when not.
    pub(crate) fn compare<T>(&mut self, expected: T) -> Result<(), RclrsError>
    where
        T: Message + PartialEq,
    {
        self.add::<T>("known", move |out, message| {
            if message == expected {
                return out.publish(&expected);
            }
            say(&format!("expected {expected:?}, got {message:?}"));
            Ok(())
        })
    }

    fn add<T: Message>(
        &mut self,
        lane: &str,
        answer: impl Fn(&Publisher<T>, T) -> Result<(), RclrsError> + Send + Sync + 'static,
    ) -> Result<(), RclrsError> {
        let topic = format!("interop/{lane}/{}", <T::RmwMsg as RmwMessage>::TYPE_NAME);
        let out = self
            .node
            .create_publisher::<T>(qos(&format!("{topic}/out")))?;
        let subscription = self.node.create_subscription::<T, _>(
            qos(&format!("{topic}/in")),
            move |message: T| {
                if let Err(error) = answer(&out, message) {
                    say(&format!("cannot publish: {error}"));
                }
            },
        )?;
        self.subscriptions.push(Box::new(subscription));
        Ok(())
    }
}

/// Nothing is lost while the two sides find each other.
fn qos(topic: &str) -> PrimitiveOptions<'_> {
    topic.reliable().transient_local().keep_last(100)
}

/// One line for the test's log.
pub(crate) fn say(text: &str) {
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{text}\n"));
}
