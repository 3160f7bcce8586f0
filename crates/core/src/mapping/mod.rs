//! From a lead to a destination's fields: templates and conditions.
//!
//! Everything is compiled, and its names checked, when a configuration is saved, so that a slip is met by the person who made
//! it and not by a lead. Rendering is pure and bounded ([`template`]). No error says what is in a lead.

mod context;
pub mod template;

pub use context::{Context, flat_lead};
pub use template::{Template, TemplateError};

use context::{NAMES, with_samples};
use minijinja::value::Serde;
use minijinja::{Expression, Value};
use serde::Serialize;
use std::collections::BTreeMap;
use template::{LANGUAGE, MAX_EXPRESSION_BYTES, on_deep_stack, unknown_name};

/// The name a condition's errors go by.
const WHEN: &str = "when";

/// A template or condition that does not compile, or does not render: where, and what is wrong, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct MappingError {
    /// The field it belongs to; `when` for the condition.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Compiled templates of one object: field → template, and a condition.
#[derive(Debug)]
pub struct Mapping {
    fields: BTreeMap<String, Template>,
    when: Option<Expression<'static, 'static>>,
}

impl Mapping {
    /// Compiles templates (checked when saved, not when a lead comes): at most 16 kB each, expressions at most 1 kB.
    ///
    /// A name that [`Context`] does not have is an error here; an answer that a form does not have is not, it renders to
    /// nothing.
    ///
    /// # Errors
    /// Every template that does not compile.
    pub fn compile(
        fields: &BTreeMap<String, String>,
        when: Option<&str>,
    ) -> Result<Self, Vec<MappingError>> {
        let mut errors = Vec::new();
        let mut note = |field: &str, error: TemplateError| {
            errors.push(MappingError {
                field: field.into(),
                message: error.to_string(),
            });
        };
        let mut compiled = BTreeMap::new();
        for (field, source) in fields {
            match compile_field(source) {
                Ok(template) => drop(compiled.insert(field.clone(), template)),
                Err(error) => note(field, error),
            }
        }
        let when = when.and_then(|source| {
            compile_condition(source)
                .map_err(|error| note(WHEN, error))
                .ok()
        });
        if errors.is_empty() {
            Ok(Self {
                fields: compiled,
                when,
            })
        } else {
            Err(errors)
        }
    }

    /// Renders all fields. A field whose template renders to nothing (or white space) is left out; white space around a
    /// value is cut.
    ///
    /// # Errors
    /// The first template that cannot be rendered (fuel used up, a type error).
    pub fn render<C: Serialize>(
        &self,
        context: &C,
    ) -> Result<BTreeMap<String, String>, MappingError> {
        let context = Value::from(Serde(context));
        let mut rendered = BTreeMap::new();
        for (field, template) in &self.fields {
            let text = template
                .render_value(context.clone())
                .map_err(|error| MappingError {
                    field: field.clone(),
                    message: error.to_string(),
                })?;
            let text = text.trim();
            if !text.is_empty() {
                rendered.insert(field.clone(), text.to_owned());
            }
        }
        Ok(rendered)
    }

    /// Evaluates the condition; true if there is none.
    ///
    /// # Errors
    /// If it cannot be evaluated.
    pub fn applies<C: Serialize>(&self, context: &C) -> Result<bool, MappingError> {
        let Some(when) = &self.when else {
            return Ok(true);
        };
        when.eval(Value::from(Serde(context)))
            .map(|value| value.is_true())
            .map_err(|error| MappingError {
                field: WHEN.into(),
                message: TemplateError::rendering(&error).to_string(),
            })
    }
}

fn compile_field(source: &str) -> Result<Template, TemplateError> {
    let template = Template::compile(source)?;
    template.check_names(NAMES)?;
    with_samples(|sample| template.rehearse(sample))?;
    Ok(template)
}

fn compile_condition(source: &str) -> Result<Expression<'static, 'static>, TemplateError> {
    if source.len() > MAX_EXPRESSION_BYTES {
        return Err(TemplateError::new(format!(
            "the condition is longer than {MAX_EXPRESSION_BYTES} bytes"
        )));
    }
    let (when, names) = on_deep_stack(|| {
        LANGUAGE
            .compile_expression_owned(source.to_owned())
            .map(|when| {
                let names = when.undeclared_variables(true);
                (when, names)
            })
            .map_err(|error| TemplateError::compiling(&error))
    })?;
    unknown_name(&names, NAMES)?;
    with_samples(|sample| TemplateError::certain(when.eval(sample)))?;
    Ok(when)
}

#[cfg(test)]
mod tests;
