//! Other numbers for the domains of a rule file: one file serves any pair of domains, as a launch file wants it.

use std::collections::BTreeMap;

use super::Rules;
use crate::ros::args::ArgsError;
use crate::ros::domain;

/// From a domain in the file to the domain that is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainMap(BTreeMap<usize, usize>);

impl DomainMap {
    /// Reads `"5:20, 10:30"`, the value of parameter `key`; empty is no change.
    ///
    /// # Errors
    /// [`ArgsError`] if it is not of this form or a number is no domain.
    pub fn parse(key: &str, text: &str) -> Result<Self, ArgsError> {
        let pairs = text
            .split(',')
            .map(str::trim)
            .filter(|pair| !pair.is_empty());
        let parsed: Option<BTreeMap<_, _>> = pairs.map(pair).collect();
        let allowed = format!(
            "pairs FILE:MEANT of domains from 0 to {}, as in 5:20, 10:30",
            domain::MAX
        );
        parsed
            .map(Self)
            .ok_or_else(|| ArgsError::value(key, format!("{text:?}"), allowed))
    }

    /// Puts the meant domains in the place of the file's.
    ///
    /// # Errors
    /// [`ArgsError`] for `key` if the file does not use a domain that is to be replaced, or two of its domains become one.
    pub fn apply(&self, key: &str, rules: &mut Rules) -> Result<(), ArgsError> {
        let used = rules.domains();
        if let Some(missing) = self.0.keys().find(|domain| !used.contains(domain)) {
            let allowed = format!("domains that the rule file uses: {used:?}");
            return Err(ArgsError::value(key, missing, allowed));
        }
        let mut meant: Vec<_> = used.iter().map(|domain| self.of(*domain)).collect();
        meant.sort_unstable();
        if let Some(twice) = meant.windows(2).find(|pair| pair[0] == pair[1]) {
            let why = "different domains for different domains of the rule file";
            return Err(ArgsError::value(key, twice[0], why));
        }
        self.replace(rules);
        Ok(())
    }

    fn of(&self, domain: usize) -> usize {
        self.0.get(&domain).copied().unwrap_or(domain)
    }

    fn replace(&self, rules: &mut Rules) {
        let routes = rules.routes.iter_mut();
        let services = rules.services.iter_mut();
        let wildcards = rules.wildcards.iter_mut();
        let ends = routes
            .map(|rule| [&mut rule.from_domain, &mut rule.to_domain])
            .chain(services.map(|rule| [&mut rule.from_domain, &mut rule.to_domain]))
            .chain(wildcards.map(|rule| [&mut rule.from_domain, &mut rule.to_domain]));
        ends.flatten().for_each(|domain| *domain = self.of(*domain));
    }
}

fn pair(text: &str) -> Option<(usize, usize)> {
    let (file, meant) = text.split_once(':')?;
    let number = |text: &str| {
        let id = text.trim().parse::<i64>().ok()?;
        (0..=domain::MAX).contains(&id).then_some(id as usize)
    };
    Some((number(file)?, number(meant)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "from_domain: 5\nto_domain: 10\ntopics: {a: {type: std_msgs/msg/String, bidirectional: true}}\nservices: {s: {type: std_srvs/srv/Empty}}";

    fn mapped(text: &str) -> Result<Rules, ArgsError> {
        let mut rules = Rules::parse("rules.yaml", RULES, false).unwrap();
        DomainMap::parse("domain_map", text)?.apply("domain_map", &mut rules)?;
        Ok(rules)
    }

    #[test]
    fn every_rule_gets_the_domains_that_are_meant() {
        let rules = mapped("5:94,10:95").unwrap();
        let routes: Vec<_> = rules
            .routes
            .iter()
            .map(|r| (r.from_domain, r.to_domain))
            .collect();
        assert_eq!(routes, [(94, 95), (95, 94)]);
        assert_eq!(
            (rules.services[0].from_domain, rules.services[0].to_domain),
            (94, 95)
        );
        assert_eq!(
            mapped("").unwrap(),
            Rules::parse("rules.yaml", RULES, false).unwrap()
        );
    }

    #[test]
    fn two_domains_may_change_places() {
        let rules = mapped("5:10, 10:5").unwrap();
        assert_eq!(
            (rules.routes[0].from_domain, rules.routes[0].to_domain),
            (10, 5)
        );
    }

    #[test]
    fn slips_are_refused_naming_the_key_the_value_and_what_is_allowed() {
        for (text, said) in [
            ("5", "FILE:MEANT"),
            ("5:233", "from 0 to 232"),
            ("5:-1", "from 0 to 232"),
            ("five:6", "FILE:MEANT"),
            ("6:7", "{5, 10}"),
            ("5:10", "different domains"),
        ] {
            let error = mapped(text).expect_err(text).to_string();
            assert!(
                error.contains("domain_map") && error.contains(said),
                "{text}: {error}"
            );
        }
    }
}
