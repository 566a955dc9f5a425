//! The parameters: names, types, defaults, what is stored over a restart. It answers requests by id and by name;
//! what a changed value means is up to the drone.

use crtp::{Kind, Status, Value};

use super::table::Name;

/// Flags in the type byte of a table entry (facts of the firmware's `param.h`).
pub(crate) const EXTENDED: u8 = 0x10;
const CORE: u8 = 0x20;
pub(crate) const READ_ONLY: u8 = 0x40;
const TYPE: u8 = 0x0f;

/// One parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Name,
    pub(crate) value: Value,
    default: Value,
    stored: Option<Value>,
}

impl Parameter {
    pub(crate) const fn is_read_only(&self) -> bool {
        self.name.kind & READ_ONLY != 0
    }

    pub(crate) const fn is_persistent(&self) -> bool {
        self.name.kind & EXTENDED != 0
    }

    /// `None`: read-only parameters have no default.
    pub(crate) fn default_value(&self) -> Option<Value> {
        (!self.is_read_only()).then_some(self.default)
    }

    pub(crate) const fn stored(&self) -> Option<Value> {
        self.stored
    }

    pub(crate) const fn store(&mut self) {
        self.stored = Some(self.value);
    }

    pub(crate) const fn clear(&mut self) {
        self.stored = None;
    }
}

/// All parameters; ids are positions.
#[derive(Clone, Debug)]
pub(crate) struct Parameters(Vec<Parameter>);

impl Parameters {
    /// The table, padded to `wanted` parameters.
    pub(crate) fn new(wanted: usize) -> Self {
        let mut all: Vec<Parameter> = GROUPS
            .iter()
            .flat_map(|(group, entries)| entries.iter().map(|entry| parameter(group, entry)))
            .collect();
        for i in all.len()..wanted {
            all.push(parameter(
                &format!("fill{:02}", i / 20),
                &(&format!("p{i:03}"), Value::F32(i as f32), EXTENDED),
            ));
        }
        Self(all)
    }

    pub(crate) fn names(&self) -> Vec<Name> {
        self.0
            .iter()
            .map(|parameter| parameter.name.clone())
            .collect()
    }

    pub(crate) fn get(&self, id: u16) -> Option<&Parameter> {
        self.0.get(usize::from(id))
    }

    pub(crate) fn get_mut(&mut self, id: u16) -> Option<&mut Parameter> {
        self.0.get_mut(usize::from(id))
    }

    pub(crate) fn find(&self, group: &str, name: &str) -> Option<u16> {
        let at = self
            .0
            .iter()
            .position(|parameter| parameter.name.is(group, name))?;
        u16::try_from(at).ok()
    }

    /// Sets a parameter by name as a packet asks for it.
    pub(crate) fn set_by_name(
        &mut self,
        group: &str,
        name: &str,
        kind: u8,
        bytes: &[u8],
    ) -> (Status, Option<u16>) {
        let Some(id) = self.find(group, name) else {
            return (Status::NOT_FOUND, None);
        };
        let Some(parameter) = self.get_mut(id) else {
            return (Status::NOT_FOUND, None);
        };
        if kind != parameter.name.kind & TYPE {
            return (Status::INVALID, None);
        }
        if parameter.is_read_only() {
            return (Status::READ_ONLY, None);
        }
        match Value::take(parameter.value.kind(), bytes) {
            Some((value, _)) => parameter.value = value,
            None => return (Status::INVALID, None),
        }
        (Status::OK, Some(id))
    }
}

fn parameter(group: &str, &(name, value, flags): &Entry<'_>) -> Parameter {
    let kind = number(value.kind()) | flags;
    Parameter {
        name: Name {
            group: group.into(),
            name: name.into(),
            kind,
        },
        value,
        default: value,
        stored: None,
    }
}

/// The type nibble of a parameter.
const fn number(kind: Kind) -> u8 {
    match kind {
        Kind::I8 => 0x0,
        Kind::I16 => 0x1,
        Kind::I32 => 0x2,
        Kind::I64 => 0x3,
        Kind::F16 => 0x5,
        Kind::F32 => 0x6,
        Kind::F64 => 0x7,
        Kind::U8 => 0x8,
        Kind::U16 => 0x9,
        Kind::U32 => 0xa,
        Kind::U64 => 0xb,
    }
}

type Entry<'a> = (&'a str, Value, u8);

const fn u8(value: u8) -> Value {
    Value::U8(value)
}

const fn f(value: f32) -> Value {
    Value::F32(value)
}

#[rustfmt::skip]
const GROUPS: &[(&str, &[Entry<'static>])] = &[
    ("stabilizer", &[("estimator", u8(2), CORE), ("controller", u8(1), CORE), ("stop", u8(0), 0)]),
    ("commander", &[("enHighLevel", u8(1), CORE)]),
    ("hlCommander", &[
        ("groupmask", u8(0), EXTENDED), ("vtoff", f(0.5), EXTENDED), ("vland", f(0.5), EXTENDED),
    ]),
    ("kalman", &[
        ("resetEstimation", u8(0), CORE), ("initialX", f(0.0), CORE), ("initialY", f(0.0), CORE),
        ("initialZ", f(0.0), CORE), ("initialYaw", f(0.0), CORE), ("robustTwr", u8(0), 0),
        ("pNAcc_xy", f(0.5), EXTENDED), ("pNAcc_z", f(1.0), EXTENDED), ("mNBaro", f(2.0), EXTENDED),
        ("mNGyro_rollpitch", f(0.1), EXTENDED), ("mNGyro_yaw", f(0.1), EXTENDED),
    ]),
    ("locSrv", &[
        ("enRangeStreamFP32", u8(0), CORE), ("enLhAngleStream", u8(0), CORE),
        ("extPosStdDev", f(0.01), CORE), ("extQuatStdDev", f(0.0045), CORE),
    ]),
    ("ring", &[
        ("effect", u8(6), EXTENDED), ("solidRed", u8(20), EXTENDED), ("solidGreen", u8(20), EXTENDED),
        ("solidBlue", u8(20), EXTENDED), ("headlightEnable", u8(0), CORE), ("fadeColor", Value::U32(0), 0),
        ("fadeTime", f(0.5), EXTENDED),
    ]),
    ("led", &[("bitmask", u8(0), 0)]),
    ("sound", &[("effect", u8(0), EXTENDED), ("freq", Value::U16(4000), 0)]),
    ("flightmode", &[
        ("althold", u8(0), CORE), ("poshold", u8(0), CORE), ("posSet", u8(0), CORE), ("yawMode", u8(2), 0),
        ("stabModeRoll", u8(1), CORE), ("stabModePitch", u8(1), CORE), ("stabModeYaw", u8(0), CORE),
    ]),
    // The firmware has a parameter for each deck driver it is built with, whichever decks are on.
    ("deck", &[
        ("cpxOverUART2", u8(1), READ_ONLY),
        ("bcACS37800", u8(0), READ_ONLY | CORE), ("bcActiveMarker", u8(0), READ_ONLY | CORE), ("bcAI", u8(0), READ_ONLY | CORE),
        ("bcBigQuad", u8(0), READ_ONLY | CORE), ("bcBuzzer", u8(0), READ_ONLY | CORE), ("bcColorLedBot", u8(0), READ_ONLY | CORE),
        ("bcColorLedTop", u8(0), READ_ONLY | CORE), ("bcDWM1000", u8(0), READ_ONLY | CORE), ("bcFlow", u8(0), READ_ONLY | CORE),
        ("bcFlow2", u8(1), READ_ONLY | CORE), ("bcGTGPS", u8(0), READ_ONLY | CORE), ("bcLedRing", u8(0), READ_ONLY | CORE),
        ("bcLhTester", u8(0), READ_ONLY | CORE), ("bcLighthouse4", u8(0), READ_ONLY | CORE), ("bcLoadcell", u8(0), READ_ONLY | CORE),
        ("bcLoco", u8(0), READ_ONLY | CORE), ("bcMultiranger", u8(1), READ_ONLY | CORE), ("bcOA", u8(0), READ_ONLY | CORE),
        ("bcServo", u8(0), READ_ONLY | CORE), ("bcUSD", u8(0), READ_ONLY | CORE), ("bcZRanger", u8(0), READ_ONLY | CORE),
        ("bcZRanger2", u8(1), READ_ONLY | CORE),
    ]),
    ("system", &[
        ("storageStats", u8(0), 0), ("storageReformat", u8(0), 0), ("highlight", u8(0), 0),
        ("assertInfo", u8(0), 0), ("taskDump", u8(0), 0),
        ("selftestPassed", Value::I8(1), READ_ONLY),
    ]),
    ("supervisor", &[
        ("infdmp", u8(0), 0), ("tmblChckEn", u8(1), 0), ("prefltTimeout", Value::U16(30_000), EXTENDED),
        ("landedTimeout", Value::U16(3000), EXTENDED), ("spinupTimeout", Value::U16(2000), EXTENDED),
    ]),
    ("pm", &[("lowVoltage", f(3.2), EXTENDED | CORE), ("criticalLowVoltage", f(3.0), EXTENDED | CORE)]),
    ("powerDist", &[("idleThrust", Value::U32(0), EXTENDED | CORE)]),
    ("motorPowerSet", &[
        ("enable", u8(0), CORE), ("m1", Value::U16(0), CORE), ("m2", Value::U16(0), CORE),
        ("m3", Value::U16(0), CORE), ("m4", Value::U16(0), CORE),
    ]),
    ("health", &[("startPropTest", u8(0), CORE), ("startBatTest", u8(0), CORE)]),
    ("imu_sensors", &[("BoschGyrSel", u8(0), READ_ONLY), ("BMP3XX", u8(1), READ_ONLY)]),
    ("cpu", &[
        ("flash", Value::U16(1024), READ_ONLY), ("id0", Value::U32(0x0031_0045), READ_ONLY),
        ("id1", Value::U32(0x3437_5108), READ_ONLY), ("id2", Value::U32(0x3336_3530), READ_ONLY),
    ]),
    ("firmware", &[
        ("revision0", Value::U32(0x2a18_fc29), READ_ONLY), ("revision1", Value::U16(0), READ_ONLY),
        ("modified", u8(0), READ_ONLY),
    ]),
    ("pid_attitude", &[
        ("roll_kp", f(6.0), EXTENDED), ("roll_ki", f(3.0), EXTENDED), ("roll_kd", f(0.0), EXTENDED),
        ("pitch_kp", f(6.0), EXTENDED), ("pitch_ki", f(3.0), EXTENDED), ("pitch_kd", f(0.0), EXTENDED),
        ("yaw_kp", f(6.0), EXTENDED), ("yaw_ki", f(1.0), EXTENDED), ("yaw_kd", f(0.35), EXTENDED),
    ]),
    ("pid_rate", &[
        ("roll_kp", f(250.0), EXTENDED), ("roll_ki", f(500.0), EXTENDED), ("roll_kd", f(2.5), EXTENDED),
        ("pitch_kp", f(250.0), EXTENDED), ("pitch_ki", f(500.0), EXTENDED), ("pitch_kd", f(2.5), EXTENDED),
        ("yaw_kp", f(120.0), EXTENDED), ("yaw_ki", f(16.7), EXTENDED), ("yaw_kd", f(0.0), EXTENDED),
    ]),
    ("posCtlPid", &[
        ("xKp", f(2.0), EXTENDED), ("yKp", f(2.0), EXTENDED), ("zKp", f(2.0), EXTENDED),
        ("xVelMax", f(1.0), EXTENDED), ("yVelMax", f(1.0), EXTENDED), ("zVelMax", f(1.0), EXTENDED),
        ("thrustBase", Value::U16(36_000), EXTENDED), ("thrustMin", Value::U16(20_000), EXTENDED),
    ]),
    ("memTst", &[("resetW", u8(0), 0)]),
    ("crtpsrv", &[("echoDelay", Value::U16(0), 0)]),
    ("syslink", &[("probe", u8(0), 0)]),
    ("usd", &[("logging", u8(0), CORE), ("canLog", u8(0), READ_ONLY)]),
];

/// Bytes of a parameter or by-name request up to their closing zero; `None` without one.
pub(crate) fn text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let (text, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    std::str::from_utf8(text).ok()
}
