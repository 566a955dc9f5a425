//! The two datagrams. Sizes and the order of the leading fields follow the contract of the public control interface
//! (state 2373 bytes with the id first; reply 371 = 8 id + 306 motion + 57 control); the rest of the state is zero,
//! because only its size matters here. Everything is little-endian.

/// Bytes of a state.
pub const STATE_BYTES: usize = 2373;
/// Bytes of a reply.
pub const REPLY_BYTES: usize = 371;
/// Joints of the arm.
pub const JOINTS: usize = 7;

const ID: usize = 0;
const TIME: usize = 8;
const LAST_ACCEPTED: usize = 16;
const SUCCESS: usize = 24;
const POSITION: usize = 32;
const VELOCITY: usize = POSITION + 8 * JOINTS;
const TORQUE: usize = VELOCITY + 8 * JOINTS;
const MOTION_BYTES: usize = 306;
const REPLY_TORQUE: usize = 8 + MOTION_BYTES;

/// One number a joint.
pub type Joints = [f64; JOINTS];

/// What the box tells each cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Number of the cycle; wraps.
    pub id: u64,
    /// Monotonic time of the box, nanoseconds.
    pub time_ns: u64,
    /// Id of the last accepted command.
    pub last_accepted: u64,
    /// Share of the last 100 commands that were accepted, 0 to 1.
    pub success_rate: f64,
    /// Joint positions, rad.
    pub position: Joints,
    /// Joint velocities, rad/s.
    pub velocity: Joints,
    /// Torques that act, N m.
    pub torque: Joints,
}

/// What the responder commands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Command {
    /// Id of the state it answers.
    pub id: u64,
    /// Torques, N m.
    pub torque: Joints,
}

/// A datagram that is no state or command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Another size.
    #[error("datagram: {found} bytes, expected {expected}")]
    Size {
        /// What came.
        found: usize,
        /// What was expected.
        expected: usize,
    },
    /// A torque that is no finite number.
    #[error("datagram: torque of joint {joint} is not finite")]
    NotFinite {
        /// Index of the joint.
        joint: usize,
    },
}

impl State {
    /// Writes the state into a datagram.
    pub fn encode(&self, into: &mut [u8; STATE_BYTES]) {
        into.fill(0);
        put(into, ID, self.id.to_le_bytes());
        put(into, TIME, self.time_ns.to_le_bytes());
        put(into, LAST_ACCEPTED, self.last_accepted.to_le_bytes());
        put(into, SUCCESS, self.success_rate.to_le_bytes());
        put_joints(into, POSITION, &self.position);
        put_joints(into, VELOCITY, &self.velocity);
        put_joints(into, TORQUE, &self.torque);
    }

    /// Reads a state.
    ///
    /// # Errors
    /// When the size is another.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; STATE_BYTES] = sized(bytes)?;
        Ok(Self {
            id: u64::from_le_bytes(get(bytes, ID)),
            time_ns: u64::from_le_bytes(get(bytes, TIME)),
            last_accepted: u64::from_le_bytes(get(bytes, LAST_ACCEPTED)),
            success_rate: f64::from_le_bytes(get(bytes, SUCCESS)),
            position: get_joints(bytes, POSITION),
            velocity: get_joints(bytes, VELOCITY),
            torque: get_joints(bytes, TORQUE),
        })
    }
}

impl Command {
    /// Writes the command into a datagram.
    pub fn encode(&self, into: &mut [u8; REPLY_BYTES]) {
        into.fill(0);
        put(into, ID, self.id.to_le_bytes());
        put_joints(into, REPLY_TORQUE, &self.torque);
    }

    /// Reads a command.
    ///
    /// # Errors
    /// When the size is another or a torque is not finite.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; REPLY_BYTES] = sized(bytes)?;
        let torque = get_joints(bytes, REPLY_TORQUE);
        if let Some(joint) = torque.iter().position(|torque| !torque.is_finite()) {
            return Err(WireError::NotFinite { joint });
        }
        Ok(Self {
            id: u64::from_le_bytes(get(bytes, ID)),
            torque,
        })
    }
}

fn sized<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], WireError> {
    bytes.try_into().map_err(|_| WireError::Size {
        found: bytes.len(),
        expected: N,
    })
}

fn put<const N: usize>(into: &mut [u8; N], at: usize, value: [u8; 8]) {
    into[at..at + 8].copy_from_slice(&value);
}

fn put_joints<const N: usize>(into: &mut [u8; N], at: usize, joints: &Joints) {
    for (index, value) in joints.iter().enumerate() {
        put(into, at + 8 * index, value.to_le_bytes());
    }
}

fn get<const N: usize>(bytes: &[u8; N], at: usize) -> [u8; 8] {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    value
}

fn get_joints<const N: usize>(bytes: &[u8; N], at: usize) -> Joints {
    std::array::from_fn(|index| f64::from_le_bytes(get(bytes, at + 8 * index)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let mut bytes = [0; STATE_BYTES];
        let state = State {
            id: 0x0102,
            success_rate: 1.0,
            position: [2.0; JOINTS],
            ..State::default()
        };
        state.encode(&mut bytes);
        assert_eq!(bytes[..3], [2, 1, 0]);
        assert_eq!(bytes[24..32], 1.0f64.to_le_bytes());
        assert_eq!(bytes[32..40], 2.0f64.to_le_bytes());
        let mut reply = [0; REPLY_BYTES];
        Command {
            id: 7,
            torque: [3.0; JOINTS],
        }
        .encode(&mut reply);
        assert_eq!((reply[0], &reply[314..322]), (7, &3.0f64.to_le_bytes()[..]));
    }

    #[test]
    fn replies_of_370_and_372_bytes_are_refused() {
        for found in [0, 8, 370, 372, 2373] {
            let error = Command::decode(&vec![0; found]).unwrap_err();
            assert_eq!(
                error,
                WireError::Size {
                    found,
                    expected: 371
                }
            );
        }
    }

    #[test]
    fn a_torque_that_is_not_finite_is_refused() {
        let mut bytes = [0; REPLY_BYTES];
        let mut torque = [0.0; JOINTS];
        torque[3] = f64::NAN;
        Command { id: 1, torque }.encode(&mut bytes);
        assert_eq!(
            Command::decode(&bytes),
            Err(WireError::NotFinite { joint: 3 })
        );
    }

    proptest! {
        #[test]
        fn state_and_command_survive_the_wire(id in any::<u64>(), time_ns in any::<u64>(), joints in any::<[f64; JOINTS]>()) {
            let state = State { id, time_ns, position: joints.map(|j| if j.is_nan() { 0.0 } else { j }), ..State::default() };
            let mut bytes = [0; STATE_BYTES];
            state.encode(&mut bytes);
            prop_assert_eq!(State::decode(&bytes), Ok(state));
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let _either = (State::decode(&bytes), Command::decode(&bytes));
        }
    }
}
