//! Which events or dead letters a caller means: names and words in, a store filter out.

use super::error::ApiError;
use super::request::{Scope, invalid};
use crate::installation::Installation;
use emanet_core::classify::Class;
use emanet_core::ids::{DeadLetterId, Target};
use emanet_core::step::EventState;
use emanet_store::Filter;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A selection, in a query string or a body. What is left out does not filter.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Selection {
    /// Name or id of a source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    /// Name or id of a destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) destination: Option<String>,
    /// Class of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) class: Option<Class>,
    /// Cause of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<String>,
    /// One dead letter, by id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dead_letter: Option<DeadLetterId>,
    /// Name of a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<String>,
    /// Not before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<Timestamp>,
    /// Before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<Timestamp>,
    /// Part of what is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

impl Selection {
    /// The store's filter.
    ///
    /// # Errors
    /// A name that nothing bears.
    pub(super) fn filter(
        self,
        scope: Scope,
        installation: &Installation,
    ) -> Result<Filter, ApiError> {
        let source = self
            .source
            .map(|s| scope.source(installation, &s))
            .transpose()?;
        let target = self
            .destination
            .map(|d| scope.destination(installation, &d).map(Target::Destination))
            .transpose()?;
        if let (Some(since), Some(until)) = (self.since, self.until)
            && since >= until
        {
            return Err(invalid("until", "must be later than `since`"));
        }
        Ok(Filter {
            workspace: scope.0,
            source,
            target,
            class: self.class,
            cause: self.cause,
            dead_letter: self.dead_letter,
            step: self.step,
            since: self.since,
            until: self.until,
            state: None,
            open: None,
            text: self.text,
        })
    }

    /// What a stored filter selected, for people.
    pub(super) fn of(filter: Filter, installation: &Installation) -> Self {
        Self {
            source: filter
                .source
                .map(|id| installation.target_name(Target::Source(id))),
            destination: filter.target.map(|t| installation.target_name(t)),
            class: filter.class,
            cause: filter.cause,
            dead_letter: filter.dead_letter,
            step: filter.step,
            since: filter.since,
            until: filter.until,
            text: filter.text,
        }
    }
}

/// The query of `GET /events`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EventsQuery {
    pub(super) source: Option<String>,
    pub(super) state: Option<EventState>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) text: Option<String>,
    pub(super) after: Option<String>,
    pub(super) limit: Option<u32>,
}

impl EventsQuery {
    /// Everything but the page.
    pub(super) fn filter(
        self,
        scope: Scope,
        installation: &Installation,
    ) -> Result<Filter, ApiError> {
        let selection = Selection {
            source: self.source,
            since: self.since,
            until: self.until,
            text: self.text,
            ..Selection::default()
        };
        Ok(Filter {
            state: self.state,
            ..selection.filter(scope, installation)?
        })
    }
}

/// The query of `GET /dead-letters`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DeadLettersQuery {
    pub(super) source: Option<String>,
    pub(super) destination: Option<String>,
    pub(super) class: Option<Class>,
    pub(super) cause: Option<String>,
    pub(super) step: Option<String>,
    pub(super) since: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
    pub(super) text: Option<String>,
    /// Only open (true) or resolved (false) ones.
    pub(super) open: Option<bool>,
    pub(super) after: Option<String>,
    pub(super) limit: Option<u32>,
}

impl DeadLettersQuery {
    /// Everything but the page.
    pub(super) fn filter(
        self,
        scope: Scope,
        installation: &Installation,
    ) -> Result<Filter, ApiError> {
        let selection = Selection {
            source: self.source,
            destination: self.destination,
            class: self.class,
            cause: self.cause,
            dead_letter: None,
            step: self.step,
            since: self.since,
            until: self.until,
            text: self.text,
        };
        Ok(Filter {
            open: self.open,
            ..selection.filter(scope, installation)?
        })
    }
}
