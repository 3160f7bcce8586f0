//! Flows: those of the file compiled, and the default flow of each workspace (CRM, task, check task; DL-4).

use super::build::Builder;
use super::document::{FlowDoc, StepDoc};
use super::problem::{choices, did_you_mean, join};
use crate::installation::{DestinationEntry, Flow, FlowStep};
use emanet_core::flow::StepPlan;
use emanet_core::mapping::Mapping;
use emanet_core::step::Kind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Module of destinations that can take a lead (API-5).
const CRM: &str = "CRM";

/// Every flow a source can have.
pub(super) struct Flows {
    /// Of the file, by name.
    pub(super) named: BTreeMap<String, Arc<Flow>>,
    /// By workspace, where there is a CRM; the names, where there are several.
    pub(super) default: BTreeMap<String, Result<Arc<Flow>, Vec<String>>>,
}

type Destinations = BTreeMap<String, Arc<DestinationEntry>>;

/// Compiles every flow.
pub(super) fn build(builder: &Builder<'_>, destinations: &Destinations) -> Flows {
    let named = builder.document.flows.iter().filter_map(|(name, doc)| {
        let flow = named_flow(builder, destinations, name, doc)?;
        Some((name.clone(), Arc::new(flow)))
    });
    Flows {
        named: named.collect(),
        default: default_flows(builder, destinations),
    }
}

fn named_flow(
    builder: &Builder<'_>,
    destinations: &Destinations,
    name: &str,
    doc: &FlowDoc,
) -> Option<Flow> {
    let path = join("flows", name);
    if !builder.document.workspaces.contains_key(&doc.workspace) {
        let known = builder.document.workspaces.keys().map(String::as_str);
        builder.problems.add(
            join(&path, "workspace"),
            format!(
                "there is no workspace {:?}. Known: {}.",
                doc.workspace,
                choices(known)
            ),
        );
        return None;
    }
    if doc.steps.is_empty() {
        // A step that could not be read has been noted at its own place.
        if !builder
            .document
            .places
            .lines
            .contains_key(&format!("{path}.steps[0]"))
        {
            builder.problems.add(
                path,
                "a flow needs at least one step; a source that only receives has flow = false",
            );
        }
        return None;
    }
    let mut steps: Vec<FlowStep> = Vec::with_capacity(doc.steps.len());
    let mut is_whole = true;
    for step in &doc.steps {
        let before: Vec<_> = steps.iter().map(|s| s.plan.name.as_str()).collect();
        is_whole &= check_order(builder, step, &before);
        match flow_step(builder, destinations, doc, step) {
            Some(step) => steps.push(step),
            None => is_whole = false,
        }
    }
    is_whole.then_some(Flow { steps })
}

/// A step's name is its own, and the steps it needs stand before it.
fn check_order(builder: &Builder<'_>, step: &StepDoc, before: &[&str]) -> bool {
    let mut is_right = true;
    if before.contains(&step.name.as_str()) || step.name == Kind::Fetch.as_str() {
        builder.problems.add(
            join(&step.path, "name"),
            format!(
                "the name {:?} is taken; every step of a flow needs its own",
                step.name
            ),
        );
        is_right = false;
    }
    for (n, need) in step.needs.iter().enumerate() {
        if !before.contains(&need.as_str()) {
            builder.problems.add(
                format!("{}[{n}]", join(&step.path, "needs")),
                format!(
                    "there is no step {need:?} before this one. Steps before it: {}.",
                    choices(before.iter().copied())
                ),
            );
            is_right = false;
        }
    }
    is_right
}

fn flow_step(
    builder: &Builder<'_>,
    destinations: &Destinations,
    flow: &FlowDoc,
    step: &StepDoc,
) -> Option<FlowStep> {
    let destination = destination_of(builder, destinations, flow, step)?;
    let known = destination.connector.objects();
    let object = step
        .object
        .clone()
        .unwrap_or_else(|| default_object(step.kind).into());
    if !known.contains(&object) {
        let known = choices(known.iter().map(String::as_str));
        builder.problems.add(
            join(&step.path, "object"),
            format!(
                "{:?} knows no object {object:?}. It knows: {known}.",
                destination.name
            ),
        );
        return None;
    }
    let plan = StepPlan {
        name: step.name.clone(),
        kind: step.kind,
        destination: destination.id,
        object,
        fields: step.fields.clone(),
        when: step.when.clone(),
        needs: step.needs.clone(),
        retry: step.retry,
    };
    compile(builder, destination, plan, &step.path)
}

/// The destination a step names, or the only one of its workspace.
fn destination_of<'d>(
    builder: &Builder<'_>,
    destinations: &'d Destinations,
    flow: &FlowDoc,
    step: &StepDoc,
) -> Option<&'d DestinationEntry> {
    let here: Vec<&str> = builder
        .document
        .destinations
        .iter()
        .filter(|(_, doc)| doc.workspace == flow.workspace)
        .map(|(name, _)| name.as_str())
        .collect();
    let Some(name) = &step.destination else {
        if let [only] = here[..] {
            return destinations.get(only).map(Arc::as_ref);
        }
        builder.problems.add(
            &step.path,
            format!("`destination` is missing; name one of {}", choices(here)),
        );
        return None;
    };
    if here.contains(&name.as_str()) || builder.is_written("destinations", name) {
        if !here.contains(&name.as_str()) && builder.document.destinations.contains_key(name) {
            builder.problems.add(
                join(&step.path, "destination"),
                format!("the destination {name:?} belongs to another workspace"),
            );
            return None;
        }
        return destinations.get(name).map(Arc::as_ref);
    }
    let hint = did_you_mean(name, here.iter().copied()).unwrap_or_default();
    builder.problems.add(
        join(&step.path, "destination"),
        format!(
            "there is no destination {name:?} in workspace {:?}.{hint} Known: {}.",
            flow.workspace,
            choices(here)
        ),
    );
    None
}

/// The default flow of every workspace that has a CRM: the names of the CRMs where there are several.
fn default_flows(
    builder: &Builder<'_>,
    destinations: &Destinations,
) -> BTreeMap<String, Result<Arc<Flow>, Vec<String>>> {
    let mut crms: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, doc) in &builder.document.destinations {
        if doc.kind.module == CRM {
            crms.entry(&doc.workspace).or_default().push(name);
        }
    }
    let mut flows = BTreeMap::new();
    for (workspace, names) in crms {
        let flow = match names[..] {
            [only] => match destinations.get(only) {
                Some(destination) => Ok(Arc::new(default_flow(builder, destination, only))),
                // It could not be built, which has been noted.
                None => continue,
            },
            _ => Err(names.into_iter().map(str::to_owned).collect()),
        };
        flows.insert(workspace.to_owned(), flow);
    }
    flows
}

fn default_flow(builder: &Builder<'_>, destination: &DestinationEntry, name: &str) -> Flow {
    let known = destination.connector.objects();
    let kinds = [Kind::Crm, Kind::Task, Kind::CheckTask];
    let steps = kinds
        .into_iter()
        .filter(|kind| known.iter().any(|object| object == default_object(*kind)))
        .filter_map(|kind| {
            let plan = StepPlan {
                name: kind.as_str().into(),
                kind,
                destination: destination.id,
                object: default_object(kind).into(),
                fields: BTreeMap::new(),
                when: None,
                needs: match kind {
                    Kind::Task | Kind::CheckTask => vec![Kind::Crm.as_str().into()],
                    Kind::Crm | Kind::Fetch => Vec::new(),
                },
                retry: emanet_core::backoff::Policy::default(),
            };
            compile(builder, destination, plan, &join("destinations", name))
        });
    Flow {
        steps: steps.collect(),
    }
}

/// The object a step makes when it names none.
fn default_object(kind: Kind) -> &'static str {
    match kind {
        Kind::Crm | Kind::Fetch => "lead",
        Kind::Task | Kind::CheckTask => "task",
    }
}

fn compile(
    builder: &Builder<'_>,
    destination: &DestinationEntry,
    plan: StepPlan,
    path: &str,
) -> Option<FlowStep> {
    let defaults;
    let fields = if plan.fields.is_empty() {
        defaults = destination.connector.default_fields(&plan.object);
        &defaults
    } else {
        &plan.fields
    };
    match Mapping::compile(fields, plan.when.as_deref()) {
        Ok(mapping) => Some(FlowStep { plan, mapping }),
        Err(errors) => {
            for error in errors {
                let key = if plan.fields.contains_key(&error.field) {
                    join(&join(path, "fields"), &error.field)
                } else {
                    join(path, &error.field)
                };
                builder.problems.add(key, error.message);
            }
            None
        }
    }
}
