//! `crazyflie-lib` over two bridges and a pseudo-terminal to the simulated drone. OPENLINK names the executable.

use std::net::UdpSocket as Probe;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_trait::async_trait;
use crazyflie_lib::subsystems::log::{LogPeriod, LogStream};
use crazyflie_lib::{Crazyflie, NoTocCache};
use crazyflie_link::{
    Connection, ConnectionStatus, ConnectionTrait, Error, Packet, RadioLinkStatistics,
};
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

/// A running program, ended with the test.
struct Program(Child);

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let openlink = std::env::var("OPENLINK").expect("OPENLINK names the executable under test");
        let child = Command::new(openlink)
            .args(arguments)
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("OPENLINK can be started"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

fn free_port() -> u16 {
    Probe::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// One CRTP packet a datagram, as cflib's `udp://`.
struct Udp(UdpSocket);

#[async_trait]
impl ConnectionTrait for Udp {
    async fn wait_close(&self) -> String {
        std::future::pending().await
    }
    async fn close(&self) {}
    async fn status(&self) -> ConnectionStatus {
        ConnectionStatus::Connected
    }
    async fn wait_disconnect(&self) {
        std::future::pending().await
    }
    async fn send_packet(&self, packet: Packet) -> Result<(), Error> {
        let bytes: Vec<u8> = packet.into();
        self.0
            .send(&bytes)
            .await
            .map(drop)
            .map_err(|_| Error::Timeout)
    }
    async fn recv_packet(&self) -> Result<Packet, Error> {
        let mut bytes = [0; 64];
        let length = self.0.recv(&mut bytes).await.map_err(|_| Error::Timeout)?;
        Ok(bytes[..length].to_vec().into())
    }
    async fn link_statistics(&self) -> Option<RadioLinkStatistics> {
        None
    }
}

async fn height(log: &LogStream) -> f32 {
    let sample = timeout(Duration::from_secs(5), log.next())
        .await
        .expect("a sample in time")
        .unwrap();
    sample.data["stateEstimate.z"].try_into().unwrap()
}

async fn reaches(log: &LogStream, wanted: f32) {
    for _ in 0..1000 {
        if (height(log).await - wanted).abs() < 0.08 {
            return;
        }
    }
    panic!("{wanted} m were not reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn connects_reads_tables_sets_a_parameter_logs_and_flies() {
    let folder = std::env::temp_dir().join(format!("crazyflie_lib_{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let uart = folder.join("uart").display().to_string();
    let (udp, prrt) = (free_port(), free_port());
    let _sim = Program::start(&["sim", "--uart", &uart]);
    let _far = Program::start(&[
        "bridge",
        "--from",
        &format!("prrt://127.0.0.1:{prrt}?listen=1"),
        "--to",
        &format!("uart://{uart}"),
    ]);
    let _near = Program::start(&[
        "bridge",
        "--from",
        &format!("udp://127.0.0.1:{udp}"),
        "--to",
        &format!("prrt://127.0.0.1:{prrt}"),
    ]);
    sleep(Duration::from_secs(3)).await;

    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(("127.0.0.1", udp)).await.unwrap();
    let link = Connection::new(Box::new(Udp(socket)));
    let connecting = Crazyflie::connect_from_link(link, NoTocCache);
    let drone = timeout(Duration::from_secs(30), connecting)
        .await
        .expect("connected in time")
        .unwrap();
    assert!(drone.platform.protocol_version().await.unwrap() >= 12);
    assert!(drone.log.names().contains(&"stateEstimate.z".to_owned()));

    let parameter = drone
        .param
        .names()
        .into_iter()
        .find(|name| name == "stabilizer.estimator")
        .expect("the estimator");
    let before: u8 = drone.param.get(&parameter).await.unwrap();
    drone.param.set(&parameter, 2u8).await.unwrap();
    assert_eq!(
        drone.param.get::<u8>(&parameter).await.unwrap(),
        2,
        "it was {before}"
    );

    assert!(drone.link_service.ping().await.unwrap() < 1000.0);
    let mut block = drone.log.create_block().await.unwrap();
    block.add_variable("stateEstimate.z").await.unwrap();
    let log = block
        .start(LogPeriod::from_millis(20).unwrap())
        .await
        .unwrap();
    drone.supervisor.send_arming_request(true).await.unwrap();
    drone
        .high_level_commander
        .take_off(0.5, None, 1.0, None)
        .await
        .unwrap();
    reaches(&log, 0.5).await;
    for _ in 0..60 {
        drone
            .commander
            .setpoint_hover(0.0, 0.0, 0.0, 0.8)
            .await
            .unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    reaches(&log, 0.8).await;
    drone.commander.notify_setpoint_stop(0).await.unwrap();
    drone
        .high_level_commander
        .land(0.0, None, 1.5, None)
        .await
        .unwrap();
    reaches(&log, 0.0).await;
    drone.disconnect().await;
    std::fs::remove_dir_all(&folder).unwrap();
}
