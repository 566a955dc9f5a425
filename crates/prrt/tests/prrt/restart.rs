//! A restarted server tells its clients at once; nobody else can, and strangers hear nothing.

use std::net::SocketAddr;
use std::time::Duration;

use prrt::{CloseReason, Config, Endpoint, Event, Keys, SecretKey, Stream};

use crate::net::{Conditions, Loss};
use crate::pair::{CLIENT, Pair, SERVER};

const MS: Duration = Duration::from_millis(1);

fn configs(sealed: bool) -> [Config; 2] {
    if !sealed {
        return [Config::default(), Config::default()];
    }
    let secrets = [(); 2].map(|()| SecretKey::generate().unwrap());
    [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| Config {
        keys: Some(Keys {
            secret: secrets[own].clone(),
            peers: vec![secrets[other].public()],
            shared: None,
        }),
        ..Config::default()
    })
}

fn joined(configs: &[Config; 2], seed: u64) -> Pair {
    let mut pair = Pair::strangers(configs, [Conditions::wifi(Loss::Never); 2], seed);
    pair.join();
    pair.run_for(100 * MS);
    pair
}

/// The server process ends and another begins with the same keys at the same address.
fn restart(pair: &mut Pair, config: &Config) {
    let endpoint = Endpoint::new(pair.now, config.clone(), true, 4242).unwrap();
    pair.ends[SERVER].endpoint = endpoint;
    pair.ends[SERVER].peer = None;
}

fn setpoint(pair: &mut Pair) {
    // Refused while the connection is made anew.
    let _ = pair.send(CLIENT, Stream::Latest(0), Some(50 * MS), b"setpoint");
}

#[test]
fn a_restarted_server_is_noticed_within_a_round_trip_and_reached_within_three() {
    for sealed in [false, true] {
        let configs = configs(sealed);
        let mut pair = joined(&configs, 1);
        restart(&mut pair, &configs[SERVER]);
        let at = pair.now;
        setpoint(&mut pair);
        pair.run_for(9 * MS);
        let last = *pair.ends[CLIENT].events.last().unwrap();
        let reason = CloseReason::Restarted;
        assert!(
            matches!(last, Event::Disconnected { reason: r, reconnecting: true, .. } if r == reason),
            "{last:?}"
        );
        while pair.ends[SERVER].received.is_empty() {
            pair.run_for(MS);
            setpoint(&mut pair);
            assert!(pair.now - at < 30 * MS, "sealed {sealed}");
        }
        assert_eq!(pair.ends[SERVER].endpoint.stray_stats().resets, 1);
    }
}

/// Whoever does not see the traffic knows neither the id nor a number; whoever does lacks the token.
#[test]
fn forged_resets_do_nothing() {
    for sealed in [false, true] {
        let configs = configs(sealed);
        let mut pair = joined(&configs, 2);
        pair.capture = Some(Vec::new());
        setpoint(&mut pair);
        let (_, seen) = pair.capture.take().unwrap()[0].clone();
        let server = pair.ends[SERVER].addr;
        let forge = |id: &[u8], number: &[u8], token: &[u8]| [&[0xa6], id, number, token].concat();
        let (id, number) = (&seen[1..5], &seen[5..9]);
        let mut forged = vec![
            forge(&[id[0] ^ 1, id[1], id[2], id[3]], number, &[]),
            forge(id, &[9, 9, 9, 9], &[]),
            forge(id, number, &[0; 16]),
            forge(id, number, &[0; 7]),
        ];
        if sealed {
            forged.push(forge(id, number, &[]));
        }
        for bytes in &forged {
            pair.inject(CLIENT, server, bytes);
        }
        let elsewhere = SocketAddr::from(([10, 0, 0, 1], 7));
        pair.inject(CLIENT, elsewhere, &forge(id, number, &[]));
        assert!(pair.is_up(CLIENT), "sealed {sealed}");
        pair.run_for(100 * MS);
        assert!(pair.is_up(CLIENT) && pair.is_up(SERVER));
        assert_eq!(pair.ends[SERVER].received.len(), 1);
    }
}

/// A reset that another server with the same key gives out proves nothing to a client elsewhere.
#[test]
fn a_reset_made_for_another_address_does_nothing() {
    let configs = configs(true);
    let mut pair = joined(&configs, 3);
    pair.capture = Some(Vec::new());
    setpoint(&mut pair);
    let (_, seen) = pair.capture.take().unwrap()[0].clone();
    let mut twin = Endpoint::new(pair.now, configs[SERVER].clone(), true, 77).unwrap();
    let mut buffer = [0; 1500];
    let mut ask = |from: SocketAddr| {
        twin.handle_datagram(pair.now, from, &seen);
        let len = twin.poll_transmit(pair.now, &mut buffer).unwrap().len;
        buffer[..len].to_vec()
    };
    let stolen = ask(SocketAddr::from(([10, 0, 0, 1], 7)));
    let genuine = ask(pair.ends[CLIENT].addr);
    let server = pair.ends[SERVER].addr;
    pair.inject(CLIENT, server, &stolen);
    assert!(pair.is_up(CLIENT));
    pair.inject(CLIENT, server, &genuine);
    assert!(!pair.is_up(CLIENT));
}

#[test]
fn strangers_hear_nothing_and_resets_are_few_and_small() {
    let configs = configs(true);
    let mut pair = joined(&configs, 4);
    pair.capture = Some(Vec::new());
    setpoint(&mut pair);
    let (_, seen) = pair.capture.take().unwrap()[0].clone();
    restart(&mut pair, &configs[SERVER]);
    let from = SocketAddr::from(([10, 0, 0, 1], 7));
    pair.capture = Some(Vec::new());
    for guess in 0..2000u32 {
        let mut bytes = seen.clone();
        bytes[1..5].copy_from_slice(&guess.wrapping_mul(0x9e37_79b9).to_be_bytes());
        pair.inject(SERVER, from, &bytes);
    }
    let answered = pair.capture.take().unwrap().len();
    assert!(answered <= 1, "{answered} guesses were answered");
    pair.capture = Some(Vec::new());
    for _ in 0..2000 {
        pair.inject(SERVER, from, &seen);
    }
    pair.inject(SERVER, from, &seen[..25]);
    let answers = pair.capture.take().unwrap();
    assert!((40..=50).contains(&answers.len()), "{}", answers.len());
    assert!(answers.iter().all(|(_, bytes)| bytes.len() < seen.len()));
}
