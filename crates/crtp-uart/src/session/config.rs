//! The figures of a session. Owns their defaults and the reasons for them.

use std::time::Duration;

/// Figures of one session; [`Config::host`] and [`Config::device`] give the usual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Host: how long to listen before the first clear-to-send is offered unasked. A drone that has just
    /// started offers one every 100 ms; one that was in use before says nothing until it holds a token.
    pub listen: Duration,
    /// Device: time between two offers until the host answers. Host: time without a data frame after which
    /// clear-to-send is offered again, because a lost token would silence the drone for ever.
    pub offer_every: Duration,
    /// Time without clear-to-send after a frame that counts as a stall.
    pub stall_after: Duration,
    /// Host: time without clear-to-send after which it is taken for lost; doubles each time, three times at
    /// most. The default acts before the drone levels out at 500 ms. `None`: never.
    pub presume_after: Option<Duration>,
    /// Host: time without a sign of the drone after which [`super::Event::SyncTimeout`] is raised; doubles.
    pub sync_timeout: Duration,
    /// Silence in the middle of a frame after which the frame is given up. Longer than the longest frame
    /// takes, 1.8 ms at 576000 bit/s and 107 ms at 9600 bit/s.
    pub cut_off_after: Duration,
    /// How long [`super::Session::close`] waits for the tokens it needs to say goodbye.
    pub linger: Duration,
    /// Received packets that wait to be taken; the next one is kept too, but its token is withheld.
    pub inbox: usize,
    /// Ordered packets that wait for a token; further ones are refused. Setpoints have mailboxes of their own.
    pub outbox: usize,
}

impl Config {
    /// The host's figures at this speed, bit/s.
    #[must_use]
    pub fn host(baud: u32) -> Self {
        Self {
            inbox: 256,
            outbox: 64,
            ..Self::common(baud)
        }
    }

    /// A drone's figures: firmware's receive queue holds 4 frames.
    #[must_use]
    pub fn device() -> Self {
        Self {
            inbox: 4,
            outbox: 4,
            presume_after: None,
            ..Self::common(576_000)
        }
    }

    fn common(baud: u32) -> Self {
        let longest = Duration::from_secs(10 * crate::cpx::MAX_FRAME as u64) / baud.max(1);
        Self {
            listen: Duration::from_millis(350),
            offer_every: Duration::from_millis(100),
            stall_after: Duration::from_millis(200),
            presume_after: Some(Duration::from_millis(400)),
            sync_timeout: Duration::from_secs(3),
            cut_off_after: Duration::from_millis(20) + 2 * longest,
            linger: Duration::from_millis(200),
            inbox: 0,
            outbox: 0,
        }
    }
}
