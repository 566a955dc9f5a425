//! The ROS command line and parameter files, read once and before any context exists.
//!
//! A node's domain belongs to its context, so its parameters must be known before there is a node to declare
//! them on. This module reads `--ros-args` as rcl does, hands out typed values whose errors name the key, the
//! value and the allowed range, and keeps what took effect so that the node can declare and print it.
//! It never looks at the environment and opens no file but those named by `--params-file`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Parameters every ROS node understands by itself; they are passed on to rcl.
const OF_EVERY_NODE: [&str; 2] = ["use_sim_time", "start_type_description_service"];

/// What is wrong with the command line or a parameter file.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// A flag lacks its value or the value has not the form the flag wants.
    #[error("{flag}: expected {expected}, got {got}")]
    Flag {
        /// The flag as typed.
        flag: String,
        /// What it wants.
        expected: &'static str,
        /// What there is.
        got: String,
    },
    /// A parameter file cannot be read or is no YAML.
    #[error("{path}: {why}")]
    File {
        /// The file as named.
        path: PathBuf,
        /// What the reader said.
        why: String,
    },
    /// A value has the wrong type or is out of range.
    #[error("parameter {key}: {value} is not allowed; allowed: {allowed}")]
    Value {
        /// The parameter.
        key: String,
        /// The value as given.
        value: String,
        /// What would be allowed.
        allowed: String,
    },
    /// A parameter that the node does not have.
    #[error("parameter {key} is unknown; this node has: {known}")]
    Unknown {
        /// The parameter.
        key: String,
        /// Those the node has.
        known: String,
    },
}

impl ArgsError {
    /// The error for a value outside what is allowed.
    pub fn value(key: &str, value: impl Display, allowed: impl Display) -> Self {
        Self::Value {
            key: key.into(),
            value: value.to_string(),
            allowed: allowed.to_string(),
        }
    }
}

/// One overridden parameter, and whether whoever wrote it meant this very node.
#[derive(Clone, Debug)]
struct Override {
    value: Value,
    /// From a wildcard in a parameter file: other nodes may be meant.
    shared: bool,
}

/// What a node and its topics are called, as the command line says.
#[derive(Clone, Debug)]
pub struct Names {
    node: String,
    namespace: String,
    remaps: Vec<(String, String)>,
}

impl Names {
    /// The full name that rcl gives a topic of the node: below its namespace unless absolute, then remapped.
    #[must_use]
    pub fn full_topic(&self, topic: &str) -> String {
        let full = self.absolute(topic);
        let rule = self
            .remaps
            .iter()
            .find(|(from, _)| self.absolute(from) == full);
        rule.map_or(full, |(_, to)| self.absolute(to))
    }

    fn absolute(&self, topic: &str) -> String {
        let namespace = self.namespace.trim_matches('/');
        let full = match topic.strip_prefix('~') {
            Some(rest) => format!("{namespace}/{}{rest}", self.node),
            None if topic.starts_with('/') => topic.to_owned(),
            None => format!("{namespace}/{topic}"),
        };
        format!("/{}", full.trim_start_matches('/'))
    }
}

/// The parameters of one node as the command line and the parameter files set them.
#[derive(Debug)]
pub struct NodeArgs {
    names: Names,
    overrides: BTreeMap<String, Override>,
    passed_on: Vec<String>,
    effective: RefCell<BTreeMap<String, Value>>,
    known: RefCell<BTreeSet<String>>,
}

impl NodeArgs {
    /// Reads the arguments of a process that runs one node called `default_name` unless `__node` is remapped.
    /// The first argument is the program's name.
    ///
    /// # Errors
    /// [`ArgsError`] for a malformed flag or an unreadable parameter file.
    pub fn parse(
        args: impl IntoIterator<Item = String>,
        default_name: &str,
    ) -> Result<Self, ArgsError> {
        let raw = RawArgs::split(args)?;
        let name = raw.node_name().unwrap_or(default_name).to_owned();
        let namespace = raw.namespace().unwrap_or("/").to_owned();
        let mut overrides = BTreeMap::new();
        for file in &raw.files {
            read_file(file, &name, &namespace, &mut overrides)?;
        }
        for (target, key, value) in &raw.assignments {
            if target.as_ref().is_none_or(|target| *target == name) {
                overrides.insert(
                    key.clone(),
                    Override {
                        value: value.clone(),
                        shared: false,
                    },
                );
            }
        }
        Ok(Self {
            names: Names {
                node: name,
                namespace,
                remaps: raw.topic_remaps(),
            },
            passed_on: raw.passed_on(&overrides),
            overrides,
            effective: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// The node's name.
    #[must_use]
    pub fn node_name(&self) -> &str {
        &self.names.node
    }

    /// What the node and its topics are called.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The arguments for rcl: everything but the parameters that this module has read.
    #[must_use]
    pub fn passed_on(&self) -> &[String] {
        &self.passed_on
    }

    /// Whether the user has set this parameter.
    #[must_use]
    pub fn is_set(&self, key: &str) -> bool {
        self.overrides.contains_key(key)
    }

    /// The raw value of a parameter, if set; marks it as known.
    #[must_use]
    pub fn raw(&self, key: &str) -> Option<&Value> {
        self.known.borrow_mut().insert(key.to_owned());
        self.overrides.get(key).map(|found| &found.value)
    }

    /// The parameters whose keys begin with `prefix`, by the rest of their keys; marks them as known.
    #[must_use]
    pub fn below(&self, prefix: &str) -> Vec<(String, Value)> {
        let under = self.overrides.iter().filter_map(|(key, set)| {
            let rest = key.strip_prefix(prefix)?;
            self.known.borrow_mut().insert(key.clone());
            Some((rest.to_owned(), set.value.clone()))
        });
        under.collect()
    }

    /// Records what took effect for `key`, to be printed and declared.
    pub fn took_effect(&self, key: &str, value: impl Into<Value>) {
        self.effective
            .borrow_mut()
            .insert(key.to_owned(), value.into());
    }

    /// What took effect, by parameter.
    #[must_use]
    pub fn effective(&self) -> BTreeMap<String, Value> {
        self.effective.borrow().clone()
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for another type or a value outside `range`.
    pub fn int(
        &self,
        key: &str,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> Result<i64, ArgsError> {
        let allowed = || format!("a whole number from {} to {}", range.start(), range.end());
        self.get(
            key,
            default,
            |value| value.as_i64().filter(|n| range.contains(n)),
            allowed,
        )
    }

    /// A number; whole numbers are taken too.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for another type or a value outside `range`.
    pub fn float(
        &self,
        key: &str,
        default: f64,
        range: RangeInclusive<f64>,
    ) -> Result<f64, ArgsError> {
        let allowed = || format!("a number from {} to {}", range.start(), range.end());
        self.get(
            key,
            default,
            |value| value.as_f64().filter(|x| range.contains(x)),
            allowed,
        )
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for another type.
    pub fn bool(&self, key: &str, default: bool) -> Result<bool, ArgsError> {
        self.get(key, default, Value::as_bool, || "true or false".into())
    }

    /// A text.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for another type.
    pub fn text(&self, key: &str, default: &str) -> Result<String, ArgsError> {
        self.get(
            key,
            default.to_owned(),
            |value| value.as_str().map(str::to_owned),
            || "a text".into(),
        )
    }

    /// One of a few words.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for any other.
    pub fn word(&self, key: &str, default: &str, words: &[&str]) -> Result<String, ArgsError> {
        let known = |value: &Value| {
            value
                .as_str()
                .filter(|word| words.contains(word))
                .map(str::to_owned)
        };
        self.get(key, default.to_owned(), known, || words.join(", "))
    }

    /// A list of whole numbers, or a single one.
    ///
    /// # Errors
    /// [`ArgsError::Value`] for another type, an empty list or a value outside `range`.
    pub fn ints(
        &self,
        key: &str,
        default: &[i64],
        range: RangeInclusive<i64>,
    ) -> Result<Vec<i64>, ArgsError> {
        let one = |value: &Value| value.as_i64().filter(|n| range.contains(n));
        let all = |value: &Value| match value {
            Value::Array(items) if !items.is_empty() => items.iter().map(one).collect(),
            single => one(single).map(|n| vec![n]),
        };
        let allowed = || format!("whole numbers from {} to {}", range.start(), range.end());
        self.get(key, default.to_vec(), all, allowed)
    }

    fn get<T: Clone + Into<Value>>(
        &self,
        key: &str,
        default: T,
        read: impl Fn(&Value) -> Option<T>,
        allowed: impl Fn() -> String,
    ) -> Result<T, ArgsError> {
        let value = match self.raw(key) {
            None => default,
            Some(given) => read(given).ok_or_else(|| ArgsError::value(key, given, allowed()))?,
        };
        self.took_effect(key, value.clone());
        Ok(value)
    }

    /// Call after the last parameter was asked for.
    ///
    /// # Errors
    /// [`ArgsError::Unknown`] for a parameter set for this very node that nothing asked for. Those that came
    /// with a wildcard may belong to other nodes and are left alone.
    pub fn refuse_unknown(&self) -> Result<(), ArgsError> {
        let known = self.known.borrow();
        let stranger = self
            .overrides
            .iter()
            .find(|(key, set)| !set.shared && !known.contains(*key) && !passes(key));
        let Some((key, _)) = stranger else {
            return Ok(());
        };
        let known = known.iter().cloned().collect::<Vec<_>>().join(", ");
        Err(ArgsError::Unknown {
            key: key.clone(),
            known,
        })
    }
}

fn passes(key: &str) -> bool {
    OF_EVERY_NODE.contains(&key)
}

/// The command line cut into its parts.
#[derive(Debug, Default)]
struct RawArgs {
    program: String,
    assignments: Vec<(Option<String>, String, Value)>,
    files: Vec<PathBuf>,
    remaps: Vec<String>,
    others: Vec<String>,
}

impl RawArgs {
    fn split(args: impl IntoIterator<Item = String>) -> Result<Self, ArgsError> {
        let mut args = args.into_iter();
        let mut raw = Self {
            program: args.next().unwrap_or_default(),
            ..Self::default()
        };
        let mut in_ros = false;
        while let Some(arg) = args.next() {
            match (in_ros, arg.as_str()) {
                (_, "--ros-args") => in_ros = true,
                (true, "--") => in_ros = false,
                (true, flag) => raw.ros_flag(flag, &mut args)?,
                (false, flag) => {
                    let expected = "ROS arguments behind --ros-args";
                    return Err(ArgsError::Flag {
                        flag: flag.into(),
                        expected,
                        got: "an argument".into(),
                    });
                }
            }
        }
        Ok(raw)
    }

    fn ros_flag(
        &mut self,
        flag: &str,
        rest: &mut impl Iterator<Item = String>,
    ) -> Result<(), ArgsError> {
        let mut operand = |expected| {
            let got = "nothing".into();
            rest.next().ok_or_else(|| ArgsError::Flag {
                flag: flag.into(),
                expected,
                got,
            })
        };
        match flag {
            "-p" | "--param" => self.assign(flag, &operand("name:=value")?)?,
            "--params-file" => self.files.push(operand("a file")?.into()),
            "-r" | "--remap" => self.remaps.push(operand("from:=to")?),
            "--log-level" | "-e" | "--enclave" => {
                let value = operand("a value")?;
                self.others.extend([flag.to_owned(), value]);
            }
            _ => self.others.push(flag.to_owned()),
        }
        Ok(())
    }

    fn assign(&mut self, flag: &str, text: &str) -> Result<(), ArgsError> {
        let malformed = || ArgsError::Flag {
            flag: flag.into(),
            expected: "name:=value",
            got: format!("{text:?}"),
        };
        let (name, value) = text.split_once(":=").ok_or_else(malformed)?;
        let (target, key) = match name.split_once(':') {
            Some((node, key)) => (Some(node.to_owned()), key),
            None => (None, name),
        };
        if key.is_empty() {
            return Err(malformed());
        }
        let value =
            serde_saphyr::from_str(value).map_err(|error| ArgsError::value(key, value, error))?;
        self.assignments.push((target, key.to_owned(), value));
        Ok(())
    }

    fn remapped(&self, key: &str) -> Option<&str> {
        self.remaps.iter().rev().find_map(|rule| {
            let (from, to) = rule.split_once(":=")?;
            (from.rsplit(':').next() == Some(key)).then_some(to)
        })
    }

    /// Remaps of topics and services, in the order rcl tries them.
    fn topic_remaps(&self) -> Vec<(String, String)> {
        let rules = self.remaps.iter().filter_map(|rule| rule.split_once(":="));
        rules
            .filter(|(from, _)| !from.contains("__") && !from.contains(':'))
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .collect()
    }

    fn node_name(&self) -> Option<&str> {
        self.remapped("__node").or_else(|| self.remapped("__name"))
    }

    fn namespace(&self) -> Option<&str> {
        self.remapped("__ns")
    }

    fn passed_on(&self, overrides: &BTreeMap<String, Override>) -> Vec<String> {
        let mut out = vec![self.program.clone(), "--ros-args".into()];
        out.extend(
            self.remaps
                .iter()
                .flat_map(|rule| ["-r".to_owned(), rule.clone()]),
        );
        out.extend(self.others.iter().cloned());
        let kept = overrides.iter().filter(|(key, _)| passes(key));
        out.extend(kept.flat_map(|(key, set)| ["-p".to_owned(), format!("{key}:={}", set.value)]));
        out
    }
}

fn read_file(
    path: &Path,
    name: &str,
    namespace: &str,
    out: &mut BTreeMap<String, Override>,
) -> Result<(), ArgsError> {
    let failed = |why: String| ArgsError::File {
        path: path.into(),
        why,
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let tree: Value = serde_saphyr::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let full_name = format!("{}/{name}", namespace.trim_end_matches('/'));
    walk_nodes(&tree, "", &full_name, out).map_err(failed)
}

/// Goes down a parameter file's namespaces to the `ros__parameters` of every pattern that names this node.
fn walk_nodes(
    tree: &Value,
    at: &str,
    full_name: &str,
    out: &mut BTreeMap<String, Override>,
) -> Result<(), String> {
    let Value::Object(map) = tree else {
        return Err(format!("{at:?}: expected a map of node names, got {tree}"));
    };
    for (key, below) in map {
        if key == "ros__parameters" {
            if matches(at, full_name) {
                flatten(below, "", at.contains('*'), out);
            }
        } else {
            walk_nodes(
                below,
                &format!("{at}/{}", key.trim_matches('/')),
                full_name,
                out,
            )?;
        }
    }
    Ok(())
}

/// Whether a node pattern with `*` (one token) and `**` (any number) names this node.
fn matches(pattern: &str, full_name: &str) -> bool {
    fn tokens(pattern: &[&str], name: &[&str]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => (0..=name.len()).any(|n| tokens(rest, &name[n..])),
            (Some((&token, rest)), Some((&first, others))) => {
                (token == "*" || token == first) && tokens(rest, others)
            }
            _ => false,
        }
    }
    let cut = |text: &'_ str| {
        text.split('/')
            .filter(|t| !t.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (pattern, name) = (cut(pattern), cut(full_name));
    let (pattern, name): (Vec<_>, Vec<_>) = (
        pattern.iter().map(String::as_str).collect(),
        name.iter().map(String::as_str).collect(),
    );
    tokens(&pattern, &name)
}

fn flatten(tree: &Value, prefix: &str, shared: bool, out: &mut BTreeMap<String, Override>) {
    match tree {
        Value::Object(map) => {
            for (key, below) in map {
                let path = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                flatten(below, &path, shared, out);
            }
        }
        leaf => {
            out.insert(
                prefix.to_owned(),
                Override {
                    value: leaf.clone(),
                    shared,
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn parse(line: &str) -> NodeArgs {
        try_parse(line).unwrap()
    }

    fn try_parse(line: &str) -> Result<NodeArgs, ArgsError> {
        NodeArgs::parse(line.split_whitespace().map(str::to_owned), "rtt")
    }

    #[test]
    fn a_value_of_the_wrong_type_names_key_value_and_range() {
        for (given, shown) in [
            ("5.0", "5.0"),
            ("five", "\"five\""),
            ("true", "true"),
            ("233", "233"),
            ("-1", "-1"),
        ] {
            let args = parse(&format!("rtt --ros-args -p domain_id:={given}"));
            let text = args.int("domain_id", 0, 0..=232).unwrap_err().to_string();
            let expected = format!(
                "parameter domain_id: {shown} is not allowed; allowed: a whole number from 0 to 232"
            );
            assert_eq!(text, expected);
        }
        for legal in [0, 101, 232] {
            let args = parse(&format!("rtt --ros-args -p domain_id:={legal}"));
            assert_eq!(args.int("domain_id", 1, 0..=232).unwrap(), legal);
        }
    }

    #[test]
    fn whole_numbers_pass_as_floats_but_texts_do_not() {
        assert_eq!(
            parse("rtt --ros-args -p rate:=50")
                .float("rate", 1.0, 0.0..=100.0)
                .unwrap(),
            50.0
        );
        assert!(
            parse("rtt --ros-args -p rate:=\"50\"")
                .float("rate", 1.0, 0.0..=100.0)
                .is_err()
        );
    }

    #[test]
    fn unknown_parameters_are_refused_and_the_known_ones_listed() {
        let args = parse("rtt --ros-args -p cuont:=5");
        args.int("count", 1, 0..=10).unwrap();
        let text = args.refuse_unknown().unwrap_err().to_string();
        assert_eq!(text, "parameter cuont is unknown; this node has: count");
    }

    #[test]
    fn command_line_wins_over_file_and_own_name_over_nothing() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "rtt:\n  ros__parameters:\n    count: 7\n    qos: {{depth: 3}}\nother:\n  ros__parameters: {{count: 9}}\n/**:\n  ros__parameters: {{foreign: 1}}\n").unwrap();
        let path = file.path().display();
        let args = parse(&format!("rtt --ros-args --params-file {path} -p count:=8"));
        assert_eq!(args.int("count", 1, 0..=10).unwrap(), 8);
        assert_eq!(args.int("qos.depth", 1, 1..=10).unwrap(), 3);
        args.refuse_unknown().unwrap();
        let renamed = parse(&format!(
            "rtt --ros-args -r __node:=other --params-file {path}"
        ));
        assert_eq!(renamed.int("count", 1, 0..=10).unwrap(), 9);
    }

    #[test]
    fn rcl_gets_remaps_and_common_parameters_only() {
        let args = parse(
            "rtt --ros-args -r __ns:=/a -p count:=3 -p use_sim_time:=false --log-level debug",
        );
        let line = args.passed_on().join(" ");
        assert_eq!(
            line,
            "rtt --ros-args -r __ns:=/a --log-level debug -p use_sim_time:=false"
        );
    }

    #[test]
    fn topics_get_the_names_that_rcl_gives_them() {
        let args = parse("rtt --ros-args -r __ns:=/a -r b:=c -r /d:=/e -r __node:=me");
        let full = |topic| args.names().full_topic(topic);
        assert_eq!(
            (full("x"), full("/x"), full("~/x")),
            ("/a/x".into(), "/x".into(), "/a/me/x".into())
        );
        assert_eq!(
            (full("b"), full("/a/b"), full("/d")),
            ("/a/c".into(), "/a/c".into(), "/e".into())
        );
        assert_eq!(parse("rtt").names().full_topic("x"), "/x");
    }

    #[test]
    fn malformed_flags_are_named() {
        assert!(
            try_parse("rtt --ros-args -p count")
                .unwrap_err()
                .to_string()
                .contains("name:=value")
        );
        assert!(
            try_parse("rtt --ros-args -p")
                .unwrap_err()
                .to_string()
                .contains("got nothing")
        );
        assert!(
            try_parse("rtt --count 3")
                .unwrap_err()
                .to_string()
                .contains("--ros-args")
        );
        assert!(try_parse("rtt --ros-args --params-file /nonexistent.yaml").is_err());
    }

    #[test]
    fn patterns_match_as_rcl_does() {
        assert!(
            matches("/**", "/a/rtt") && matches("/*/rtt", "/a/rtt") && matches("/a/rtt", "/a/rtt")
        );
        assert!(
            !matches("/rtt", "/a/rtt") && !matches("/*", "/a/rtt") && matches("/**/rtt", "/rtt")
        );
    }
}
