//! JSON as a sender wrote it: every key, also one that comes twice, in order, and numbers as they stand (ids beyond 2^53 stay
//! exact, `1.50` stays `1.50`). For bodies that become leads; answers of the other side are read with `serde_json::Value`.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::fmt;

/// Nesting beyond this is refused before anything is walked.
const DEPTH_MAX: usize = 64;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    Text(String),
    List(Vec<Node>),
    /// In order, doubles included.
    Object(Vec<(String, Node)>),
}

/// Why a text is no JSON we take; also the stable reason shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    NotJson,
    TooDeep,
}

impl Broken {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NotJson => "not_json",
            Self::TooDeep => "too_deep",
        }
    }
}

/// Reads a text. An unpaired surrogate, which a browser writes when it cuts a text inside an emoji, becomes U+FFFD.
pub(crate) fn parse(text: &str) -> Result<Node, Broken> {
    if depth(text) > DEPTH_MAX {
        return Err(Broken::TooDeep);
    }
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| Broken::NotJson)?;
    node(raw)
}

/// The elements of a list, each still as text; `None` for what begins like no list, whether it can be read or not. Reads no
/// deeper than one level.
pub(crate) fn elements(text: &str) -> Result<Option<Vec<&RawValue>>, Broken> {
    if !text.trim_start().starts_with('[') {
        return Ok(None);
    }
    if depth(text) > DEPTH_MAX {
        return Err(Broken::TooDeep);
    }
    let elements = serde_json::from_str(text).map_err(|_| Broken::NotJson)?;
    Ok(Some(elements))
}

impl Node {
    /// The first value of that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Object(members) => members.iter().find(|(k, _)| k == key).map(|(_, v)| v),
            _ => None,
        }
    }

    /// The keys that come more than once, found in one pass: an object may have as many members as fit into a body (F28).
    pub(crate) fn doubled(&self) -> BTreeSet<&str> {
        let Self::Object(members) = self else {
            return BTreeSet::new();
        };
        let mut seen = BTreeSet::new();
        members
            .iter()
            .map(|(key, _)| key.as_str())
            .filter(|key| !seen.insert(*key))
            .collect()
    }

    /// The elements of a list; none for anything else.
    pub(crate) fn elements(&self) -> &[Node] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The value written without spaces; the same value is always the same text.
    pub(crate) fn canonical(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Self::Null => "null".into(),
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.clone(),
            Self::Text(text) => quoted(text),
            Self::List(elements) => {
                let elements: Vec<_> = elements.iter().map(Self::canonical).collect();
                format!("[{}]", elements.join(","))
            }
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| format!("{}:{}", quoted(key), value.canonical()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// An id or another single value as text: a text as it is, a number as it was written.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) => Some(text),
            _ => None,
        }
    }
}

/// The deepest nesting, counted without reading more than brackets and quotes.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_text, mut is_escaped) = (false, false);
    for byte in text.bytes() {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{' | b'[') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn node(raw: &RawValue) -> Result<Node, Broken> {
    let text = raw.get();
    let broken = |_| Broken::NotJson;
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let Members(members) = serde_json::from_str(text).map_err(broken)?;
            let members = members
                .into_iter()
                .map(|(key, raw)| Ok((key.0, node(raw)?)));
            Node::Object(members.collect::<Result<_, _>>()?)
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
            Node::List(elements.into_iter().map(node).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Node::Text(serde_json::from_str::<Lossy>(text).map_err(broken)?.0),
        Some(b'n') => Node::Null,
        Some(b't') => Node::Bool(true),
        Some(b'f') => Node::Bool(false),
        _ => Node::Number(text.to_owned()),
    })
}

/// The members of an object, doubles included.
struct Members<'a>(Vec<(Lossy, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// A text in which unpaired surrogates are replaced. Asked for bytes, `serde_json` hands them through instead of failing.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                // The plain check first: it is many times faster, and nearly always enough.
                let text = std::str::from_utf8(bytes);
                Ok(Lossy(text.map_or_else(
                    |_| String::from_utf8_lossy(bytes).into_owned(),
                    str::to_owned,
                )))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Lossy(text.to_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_stay_as_written_and_doubles_are_kept() {
        let node = parse(r#"{"id":90071992547409931234,"n":1.50,"id":"x","l":[null,true,-0]}"#)
            .expect("JSON");
        assert_eq!(
            node.get("id").and_then(Node::text),
            Some("90071992547409931234")
        );
        assert_eq!(node.get("n").and_then(Node::text), Some("1.50"));
        assert_eq!(node.doubled(), BTreeSet::from(["id"]));
        assert_eq!(
            node.get("l").map(Node::elements),
            Some([Node::Null, Node::Bool(true), Node::Number("-0".into())].as_slice())
        );
    }

    /// H25: an escaped backslash before `u0000` is text; the rule for NUL is applied to the decoded text, later.
    #[test]
    fn escapes_are_decoded_once() {
        let node = parse(r#"{"a":"\\u0000","b":"x\u0000y","\u00e7":"\ud83d"}"#).expect("JSON");
        assert_eq!(node.get("a").and_then(Node::text), Some("\\u0000"));
        assert_eq!(node.get("b").and_then(Node::text), Some("x\0y"));
        assert!(
            node.get("ç")
                .and_then(Node::text)
                .is_some_and(|t| t.contains('\u{fffd}'))
        );
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&nested(64)).is_ok());
        assert_eq!(parse(&nested(65)), Err(Broken::TooDeep));
        assert_eq!(parse(&"[".repeat(1_000_000)), Err(Broken::TooDeep));
        assert_eq!(
            parse(&format!(r#"["{}"]"#, "[".repeat(100))).map(|n| n.elements().len()),
            Ok(1)
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", json in r#"[\[\]{}:,"\\u0-9a-f]{0,60}"#) {
            let _ = parse(&text);
            let _ = parse(&json);
        }

        #[test]
        fn canonical_text_reads_back(text in ".*", number in any::<i64>()) {
            let node = Node::Object(vec![(text.clone(), Node::List(vec![Node::Text(text), Node::Number(number.to_string()), Node::Null]))]);
            prop_assert_eq!(parse(&node.canonical()), Ok(node));
        }

        #[test]
        fn every_text_comes_back(text in ".*") {
            let json = serde_json::to_string(&text).expect("a text");
            prop_assert_eq!(parse(&json), Ok(Node::Text(text)));
        }
    }
}
