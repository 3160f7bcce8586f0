//! One template: compiled on a stack that cannot overflow, rendered within a budget.
//!
//! Templates come from people who configure, values from strangers. So nothing here reads a file, includes another template,
//! keeps state between renders, or puts a value into an error.

use minijinja::value::{Serde, ValueKind};
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
};
use serde::Serialize;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Longest template.
pub const MAX_TEMPLATE_BYTES: usize = 16 * 1024;
/// Longest condition.
pub const MAX_EXPRESSION_BYTES: usize = 1024;

/// What one render may cost; bounds its time, and its memory to about 3 MB.
const FUEL: u64 = 50_000;
const RECURSION_LIMIT: usize = 64;
/// The parser recurses per unary operator without counting: 8,000 of them overflow a thread's usual 2 MiB, and that aborts the
/// process. The longest template needs less than half of this.
const COMPILE_STACK_BYTES: usize = 64 * 1024 * 1024;

/// The one name inside each template's own environment.
const NAME: &str = "template";

/// The language of fields and conditions: what is missing renders to nothing.
pub(super) static LANGUAGE: LazyLock<Environment<'static>> =
    LazyLock::new(|| language(UndefinedBehavior::Chainable));

/// The language of URLs: every value is percent-encoded, and a missing one is an error, because `/leads/` instead of
/// `/leads/17` would address all leads.
static URL_LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = language(UndefinedBehavior::SemiStrict);
    language.set_auto_escape_callback(|_| AutoEscape::Custom("url".into()));
    language.set_formatter(write_encoded);
    language
});

fn language(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut language = Environment::new();
    language.set_undefined_behavior(undefined);
    language.set_auto_escape_callback(|_| AutoEscape::None);
    language.set_formatter(write_plain);
    language.set_fuel(Some(FUEL));
    language.set_recursion_limit(RECURSION_LIMIT);
    language.add_filter("urlencode", |value: String| {
        Value::from_safe_string(percent_encode(&value))
    });
    // `namespace` lets a loop nest a list into itself until dropping it overflows the stack; `debug` prints the whole context.
    language.remove_global("namespace");
    language.remove_global("debug");
    language
}

/// A template that does not compile or render: what is wrong, in one sentence, without anything of the lead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(String);

/// A compiled template.
pub struct Template {
    environment: Environment<'static>,
    names: HashSet<String>,
    is_url: bool,
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template")
            .field("names", &self.names)
            .field("is_url", &self.is_url)
            .finish_non_exhaustive()
    }
}

impl Template {
    /// Compiles a text template. What is missing renders to nothing; nothing is escaped.
    ///
    /// # Errors
    /// If it is too long, has a mistake, or uses a filter, test or function that does not exist.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        Self::compile_in(&LANGUAGE, source, false)
    }

    /// Compiles a template of a URL or a part of one. Every `{{ }}` is percent-encoded as one path segment or query
    /// value; `{{ x | safe }}` is not. Rendering fails if a value is missing (`{{ x | default("") }}` allows that), and if a
    /// path segment comes out as `.` or `..`.
    ///
    /// ```
    /// # use emanet_core::mapping::Template;
    /// # use std::collections::BTreeMap;
    /// let url = Template::compile_url("/leads?ref={{ ref }}")?;
    /// assert_eq!(url.render(&BTreeMap::from([("ref", "a/b c")]))?, "/leads?ref=a%2Fb%20c");
    /// # Ok::<_, emanet_core::mapping::TemplateError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Template::compile`].
    pub fn compile_url(source: &str) -> Result<Self, TemplateError> {
        Self::compile_in(&URL_LANGUAGE, source, true)
    }

    fn compile_in(
        language: &Environment<'static>,
        source: &str,
        is_url: bool,
    ) -> Result<Self, TemplateError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::new(format!(
                "the template is longer than {MAX_TEMPLATE_BYTES} bytes"
            )));
        }
        let mut environment = language.clone();
        let template = on_deep_stack(|| {
            let compiled = environment
                .add_template_owned(NAME, source.to_owned())
                .and_then(|()| Ok(environment.get_template(NAME)?.undeclared_variables(true)));
            match compiled {
                Ok(names) => Ok(Self {
                    environment,
                    names,
                    is_url,
                }),
                Err(error) => Err(TemplateError::compiling(&error)),
            }
        })?;
        template.rehearse(Value::UNDEFINED)?;
        Ok(template)
    }

    /// Checks that the template uses no name but these. `lead.email` allows that attribute of `lead` and what is below it;
    /// `lead` allows everything below.
    ///
    /// # Errors
    /// If it uses another.
    pub fn check_names(&self, allowed: &[&str]) -> Result<(), TemplateError> {
        unknown_name(&self.names, allowed)
    }

    /// Renders the template.
    ///
    /// # Errors
    /// If it does too much work, an operation does not fit a value, or (in a URL) a value is missing.
    pub fn render<C: Serialize + ?Sized>(&self, context: &C) -> Result<String, TemplateError> {
        self.render_value(Serde(context).into())
    }

    /// Renders a context that was made a value before; several templates share it.
    pub(super) fn render_value(&self, context: Value) -> Result<String, TemplateError> {
        let text = self
            .try_render(context)
            .map_err(|error| TemplateError::rendering(&error))?;
        if self.is_url && climbs(&text) {
            return Err(TemplateError::new(
                "the path has a segment `.` or `..`, which would address something else",
            ));
        }
        Ok(text)
    }

    /// Renders for the sake of the mistakes that no value could mend; what depends on values is not judged.
    pub(super) fn rehearse(&self, sample: Value) -> Result<(), TemplateError> {
        TemplateError::certain(self.try_render(sample))
    }

    fn try_render(&self, context: Value) -> Result<String, Error> {
        self.environment.get_template(NAME)?.render(context)
    }
}

impl TemplateError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A mistake in the source: the engine's own words, which quote nothing but the source.
    pub(super) fn compiling(error: &Error) -> Self {
        let line = error.line().unwrap_or(1);
        match error.detail() {
            Some(detail) => Self(format!("{detail} (line {line})")),
            None => Self(format!("{} (line {line})", error.kind())),
        }
    }

    /// A failure with a lead at hand: our words only, as the engine's may quote a value.
    pub(super) fn rendering(error: &Error) -> Self {
        let what = match error.kind() {
            ErrorKind::OutOfFuel => "the template does too much work",
            ErrorKind::UndefinedError => "a value it needs is missing",
            ErrorKind::UnknownFilter => "it uses a filter that does not exist",
            ErrorKind::UnknownTest => "it uses a test that does not exist",
            ErrorKind::UnknownFunction => "it calls a function that does not exist",
            ErrorKind::UnknownMethod => "it calls a method that the value does not have",
            ErrorKind::TooManyArguments => "a filter or function got too many arguments",
            ErrorKind::MissingArgument => "a filter or function lacks an argument",
            ErrorKind::TemplateNotFound | ErrorKind::BadInclude => {
                "it includes another template, and there are none"
            }
            ErrorKind::BadSerialization => "the lead cannot be shown to the template",
            _ => "an operation does not fit the value it meets",
        };
        match error.line() {
            Some(line) => Self(format!("{what} (line {line})")),
            None => Self(what.into()),
        }
    }

    /// Keeps of a rehearsal the failures that every lead would meet.
    pub(super) fn certain<T>(rehearsal: Result<T, Error>) -> Result<(), Self> {
        let Err(error) = rehearsal else {
            return Ok(());
        };
        match error.kind() {
            ErrorKind::OutOfFuel
            | ErrorKind::UnknownFilter
            | ErrorKind::UnknownTest
            | ErrorKind::UnknownFunction => Err(Self::compiling(&error)),
            // The engine has `include` in this build because the console needs it; here there is nothing to include.
            ErrorKind::TemplateNotFound | ErrorKind::BadInclude => Err(Self::rendering(&error)),
            _ => Ok(()),
        }
    }
}

/// Finds the first (by alphabet) used name that is neither allowed nor below or above an allowed one.
pub(super) fn unknown_name(used: &HashSet<String>, allowed: &[&str]) -> Result<(), TemplateError> {
    let is_below = |name: &str, of: &str| {
        name.strip_prefix(of)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_known = |name: &str| {
        LANGUAGE.globals().any(|(global, _)| global == name)
            || allowed
                .iter()
                .any(|a| is_below(name, a) || is_below(a, name))
    };
    match used.iter().filter(|name| !is_known(name)).min() {
        None => Ok(()),
        Some(name) => Err(TemplateError::new(format!(
            "`{name}` is not known here; known are {}",
            allowed.join(", ")
        ))),
    }
}

/// Runs on a thread whose stack the deepest source cannot overflow. Dropping a syntax tree recurses as deep as parsing, so
/// whatever touches one belongs in here.
pub(super) fn on_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, TemplateError> + Send,
) -> Result<T, TemplateError> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(COMPILE_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|_| TemplateError::new("no thread could be started to compile the template"))?
            .join()
            .unwrap_or_else(|_| Err(TemplateError::new("the template cannot be compiled")))
    })
}

/// The engine writes `True` and `False` as Python does; APIs that take text expect JSON's spelling.
fn write_plain(out: &mut Output, _: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(()),
        ValueKind::Bool => write!(out, "{}", value.is_true()).map_err(Error::from),
        _ => write!(out, "{value}").map_err(Error::from),
    }
}

fn write_encoded(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::Bool => write_plain(out, state, value),
        _ if value.is_safe() => write_plain(out, state, value),
        _ => write!(out, "{}", percent_encode(&value.to_string())).map_err(Error::from),
    }
}

/// Percent-encodes everything but RFC 3986's unreserved characters, so the result is one path segment or one query value.
fn percent_encode(text: &str) -> String {
    text.bytes().fold(
        String::with_capacity(text.len()),
        |mut encoded, byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
                encoded
            }
            _ => encoded + &format!("%{byte:02X}"),
        },
    )
}

/// Whether a URL's path has a dot segment, written out or encoded: URL parsers resolve both.
fn climbs(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\']).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}
