//! Patterns of topic names: `*` stands for anything within a token, `**` for any number of whole tokens.

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<String>);

impl Pattern {
    /// Reads a pattern, which is against the root; `None` for one that can match no topic.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let tokens = text.strip_prefix('/').unwrap_or(text);
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
        let good = |token: &str| {
            !token.is_empty()
                && token.chars().all(legal)
                && (token == "**" || !token.contains("**"))
                && !token.starts_with(|c: char| c.is_ascii_digit())
        };
        let tokens: Vec<_> = tokens.split('/').map(str::to_owned).collect();
        tokens
            .iter()
            .all(|token| good(token))
            .then_some(Self(tokens))
    }

    /// Whether a full topic name matches. Hidden topics (a token begins with `_`) match only a pattern that names
    /// the underscore.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        let topic: Vec<_> = topic.trim_start_matches('/').split('/').collect();
        let pattern: Vec<_> = self.0.iter().map(String::as_str).collect();
        whole(&pattern, &topic)
    }
}

fn whole(pattern: &[&str], topic: &[&str]) -> bool {
    match (pattern.split_first(), topic.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), _) => (0..=topic.len())
            .take_while(|&n| topic[..n].iter().all(|token| !token.starts_with('_')))
            .any(|n| whole(rest, &topic[n..])),
        (Some((token, rest)), Some((first, others))) => {
            let hidden = first.starts_with('_') && !token.starts_with('_');
            !hidden && within(token.as_bytes(), first.as_bytes()) && whole(rest, others)
        }
        _ => false,
    }
}

fn within(pattern: &[u8], token: &[u8]) -> bool {
    match (pattern.split_first(), token.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=token.len()).any(|n| within(rest, &token[n..])),
        (Some((p, rest)), Some((t, others))) => p == t && within(rest, others),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(pattern: &str, topic: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(topic)
    }

    #[test]
    fn one_star_stays_in_its_token_and_two_cross_them() {
        assert!(hits("/cf*/pose", "/cf1/pose") && hits("cf*/pose", "/cf12/pose"));
        assert!(!hits("/cf*/pose", "/cf1/a/pose") && !hits("/*", "/a/b"));
        assert!(hits("/**", "/a/b/c") && hits("/a/**", "/a") && hits("/**/pose", "/pose"));
        assert!(hits("/a/**/z", "/a/b/c/z") && !hits("/a/**/z", "/a/b/c"));
    }

    #[test]
    fn hidden_topics_must_be_named() {
        assert!(!hits("/**", "/fly/_action/status") && !hits("/*", "/_hidden"));
        assert!(hits("/_*", "/_hidden") && hits("/fly/_action/*", "/fly/_action/status"));
    }

    #[test]
    fn what_matches_nothing_is_no_pattern() {
        for bad in ["", "/", "/a//b", "/1a", "/a/***", "/a**", "/a b"] {
            assert_eq!(Pattern::parse(bad), None, "{bad}");
        }
    }
}
