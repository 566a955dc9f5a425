//! From what was written to what it means.

use std::time::Duration;

use super::values::{self, Wrong};
use super::{Mode, Pattern, QosRule, RouteRule, Rules, ServiceRule, WildcardRule, cycles, raw};

/// When a service call is given up unless its rule says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Depth of an action's feedback topic, which bursts.
const FEEDBACK_DEPTH: u32 = 100;

pub(super) fn rules(file: &raw::File, lazy: bool) -> Result<Rules, Wrong> {
    let name = file.name.clone().unwrap_or_else(|| "domain_bridge".into());
    if !values::is_token(&name) {
        let why = format!("{name:?} is not allowed; allowed: letters, digits and _");
        return Err(("name".into(), why));
    }
    let empty = file.topics.0.is_empty() && file.services.0.is_empty() && file.actions.0.is_empty();
    if empty && file.wildcards.is_empty() {
        let why = "there is none; allowed: at least one of topics, services, actions, wildcards";
        return Err(("topics".into(), why.into()));
    }
    let mut out = Rules {
        name,
        routes: vec![],
        services: vec![],
        wildcards: vec![],
    };
    for (topic, rule) in &file.topics.0 {
        let routes = topic_rules(file, topic, rule, lazy);
        out.routes
            .extend(routes.map_err(below(format!("topics.{topic}")))?);
    }
    for (name, rule) in &file.services.0 {
        let service = service_rule(file, name, rule, "srv", Some(TIMEOUT));
        out.services
            .push(service.map_err(below(format!("services.{name}")))?);
    }
    for (name, rule) in &file.actions.0 {
        let whole = service_rule(file, name, rule, "action", None);
        add_action(&whole.map_err(below(format!("actions.{name}")))?, &mut out);
    }
    for (index, rule) in file.wildcards.iter().enumerate() {
        let rules = wildcard_rules(file, rule, lazy);
        out.wildcards
            .extend(rules.map_err(below(format!("wildcards.{index}")))?);
    }
    cycles::refuse_repeats(&out.routes)?;
    cycles::refuse_service_repeats(&out.services)?;
    Ok(out)
}

/// Puts the key of a rule before the key of what is wrong in it.
fn below(key: String) -> impl FnOnce(Wrong) -> Wrong {
    move |(tail, why)| (format!("{key}{tail}"), why)
}

fn topic_rules(
    file: &raw::File,
    topic: &str,
    rule: &raw::Topic,
    lazy: bool,
) -> Result<Vec<RouteRule>, Wrong> {
    let type_name = values::type_name(rule.r#type.as_ref(), "msg")?;
    let (from_domain, to_domain) =
        domains(file, rule.from_domain.as_ref(), rule.to_domain.as_ref())?;
    let (from_topic, to_topic) = names(topic, rule.remap.as_ref())?;
    if from_topic.contains("/_action/") {
        let why = "is a part of an action, which works as a whole only; allowed: the action's name, under actions";
        return Err((String::new(), why.into()));
    }
    refuse_itself((from_domain, &from_topic), (to_domain, &to_topic))?;
    let there = RouteRule {
        from_domain,
        to_domain,
        from_topic,
        to_topic,
        type_name,
        qos: values::qos(rule.qos.as_ref())?,
        mode: values::mode(rule.mode.as_ref(), file.mode.as_ref())?,
        lazy: rule.lazy.unwrap_or(lazy),
        mandatory: rule.mandatory.unwrap_or(true),
        spacing: values::rate_limit(rule.rate_limit.as_ref())?,
    };
    let back = there.reversed();
    Ok(match (rule.bidirectional, rule.reversed) {
        (true, _) => vec![there, back],
        (false, true) => vec![back],
        (false, false) => vec![there],
    })
}

impl RouteRule {
    /// The way back: domains and names swapped, and what was packed is unpacked.
    fn reversed(&self) -> Self {
        Self {
            from_domain: self.to_domain,
            to_domain: self.from_domain,
            from_topic: self.to_topic.clone(),
            to_topic: self.from_topic.clone(),
            mode: match self.mode {
                Mode::Normal => Mode::Normal,
                Mode::Compress => Mode::Decompress,
                Mode::Decompress => Mode::Compress,
            },
            ..self.clone()
        }
    }
}

fn domains(
    file: &raw::File,
    from: Option<&serde_json::Value>,
    to: Option<&serde_json::Value>,
) -> Result<(usize, usize), Wrong> {
    Ok((
        values::domain_of("from_domain", from, file.from_domain.as_ref())?,
        values::domain_of("to_domain", to, file.to_domain.as_ref())?,
    ))
}

fn names(name: &str, remap: Option<&String>) -> Result<(String, String), Wrong> {
    let from = values::full_name(name)?;
    let to = match remap {
        Some(name) => values::full_name(name).map_err(|(_, why)| (".remap".to_owned(), why))?,
        None => from.clone(),
    };
    Ok((from, to))
}

fn refuse_itself(from: (usize, &str), to: (usize, &str)) -> Result<(), Wrong> {
    if from != to {
        return Ok(());
    }
    let why = format!(
        "from_domain and to_domain are both {} and the name stays: it would feed itself; allowed: two domains, or a remap",
        from.0
    );
    Err((String::new(), why))
}

fn service_rule(
    file: &raw::File,
    name: &str,
    rule: &raw::Service,
    kind: &str,
    timeout: Option<Duration>,
) -> Result<ServiceRule, Wrong> {
    let type_name = values::type_name(rule.r#type.as_ref(), kind)?;
    let (from_domain, to_domain) =
        domains(file, rule.from_domain.as_ref(), rule.to_domain.as_ref())?;
    let (from_name, to_name) = names(name, rule.remap.as_ref())?;
    refuse_itself((from_domain, &from_name), (to_domain, &to_name))?;
    Ok(ServiceRule {
        from_domain,
        to_domain,
        from_name,
        to_name,
        type_name,
        timeout: values::timeout(rule.timeout.as_ref())?.or(timeout),
        mandatory: rule.mandatory.unwrap_or(true),
    })
}

/// An action is three services and two topics below its name.
fn add_action(action: &ServiceRule, out: &mut Rules) {
    let own = |part: &str| format!("{}_{part}", action.type_name);
    for (part, type_name) in [
        ("send_goal", own("SendGoal")),
        ("get_result", own("GetResult")),
        ("cancel_goal", "action_msgs/srv/CancelGoal".into()),
    ] {
        out.services.push(ServiceRule {
            from_name: format!("{}/_action/{part}", action.from_name),
            to_name: format!("{}/_action/{part}", action.to_name),
            type_name,
            ..action.clone()
        });
    }
    for (part, type_name, depth) in [
        ("feedback", own("FeedbackMessage"), Some(FEEDBACK_DEPTH)),
        ("status", "action_msgs/msg/GoalStatusArray".into(), None),
    ] {
        out.routes.push(RouteRule {
            from_domain: action.from_domain,
            to_domain: action.to_domain,
            from_topic: format!("{}/_action/{part}", action.from_name),
            to_topic: format!("{}/_action/{part}", action.to_name),
            type_name,
            qos: QosRule {
                depth,
                ..QosRule::default()
            },
            mode: Mode::Normal,
            lazy: false,
            mandatory: action.mandatory,
            spacing: None,
        });
    }
}

fn wildcard_rules(
    file: &raw::File,
    rule: &raw::Wildcard,
    lazy: bool,
) -> Result<Vec<WildcardRule>, Wrong> {
    let (from_domain, to_domain) =
        domains(file, rule.from_domain.as_ref(), rule.to_domain.as_ref())?;
    refuse_itself((from_domain, ""), (to_domain, ""))?;
    let patterns = |key: &str, texts: &[String]| {
        let parse = |text: &String| Pattern::parse(text).ok_or_else(|| no_pattern(key, text));
        texts.iter().map(parse).collect::<Result<Vec<_>, _>>()
    };
    let allow = patterns("allow", rule.allow.as_slice())?;
    if allow.is_empty() {
        return Err((
            ".allow".into(),
            "there is none; allowed: one pattern or a list".into(),
        ));
    }
    let there = WildcardRule {
        from_domain,
        to_domain,
        allow,
        deny: patterns("deny", rule.deny.as_slice())?,
        qos: values::qos(rule.qos.as_ref())?,
        lazy: rule.lazy.unwrap_or(lazy),
        spacing: values::rate_limit(rule.rate_limit.as_ref())?,
    };
    let back = WildcardRule {
        from_domain: to_domain,
        to_domain: from_domain,
        ..there.clone()
    };
    Ok(if rule.bidirectional {
        vec![there, back]
    } else {
        vec![there]
    })
}

fn no_pattern(key: &str, text: &str) -> Wrong {
    let why = format!(
        "{text:?} is no pattern; allowed: a topic name with * within a token and ** for any tokens"
    );
    (format!(".{key}"), why)
}
