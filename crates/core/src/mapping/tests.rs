use super::*;
use crate::lead::{Email, Lead, Phone, PhoneKind, Problem};
use proptest::prelude::*;

fn lead() -> Lead {
    Lead {
        full_name: Some("İrem Şahin".into()),
        phone: Some(Phone {
            raw: "0532 123 45 67".into(),
            e164: Some("+905321234567".into()),
            kind: PhoneKind::Mobile,
            valid: true,
            extension: None,
        }),
        email: Some(Email {
            raw: "irem@örnek".into(),
            address: None,
            suggestion: None,
        }),
        message: Some("<b>Ömer & \"Ece\"</b>".into()),
        answers: vec![
            ("daire tipi".into(), vec!["2+1".into(), "3+1".into()]),
            ("butce".into(), vec!["5".into()]),
            ("butce".into(), vec!["6".into()]),
        ],
        consent: vec![
            ("kvkk".into(), true),
            ("sms".into(), true),
            ("sms".into(), false),
        ],
        attribution: BTreeMap::from([("utm_source".into(), "fb".into())]),
        created_at: "2026-01-02T03:04:05Z".parse().ok(),
        problems: vec![Problem::note("email", "not_valid")],
        ..Lead::default()
    }
}

fn with_context<T>(lead: &Lead, f: impl FnOnce(&Context<'_>) -> T) -> T {
    let links = BTreeMap::from([("crm".to_owned(), "L-17".to_owned())]);
    f(&Context {
        lead,
        source: "site",
        external_id: "src:1",
        missing: &["email".into()],
        links: &links,
    })
}

fn compile(source: &str, when: Option<&str>) -> Result<Mapping, Vec<MappingError>> {
    Mapping::compile(&BTreeMap::from([("f".to_owned(), source.to_owned())]), when)
}

#[track_caller]
fn check(source: &str, wanted: Option<&str>) {
    let mapping = compile(source, None).expect(source);
    let fields = with_context(&lead(), |c| mapping.render(c)).expect(source);
    assert_eq!(fields.get("f").map(String::as_str), wanted, "{source}");
}

#[track_caller]
fn check_refused(source: &str, when: Option<&str>, wanted: &str) {
    let errors = compile(source, when).expect_err(source);
    assert_eq!(errors.len(), 1, "{errors:?}");
    let text = errors[0].to_string();
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn templates_see_the_lead_under_short_names() {
    check("{{ lead.full_name }}", Some("İrem Şahin"));
    check(
        "{{ lead.phone }} {{ lead.phone_raw }}",
        Some("+905321234567 0532 123 45 67"),
    );
    check("{{ lead.email }}", Some("irem@örnek"));
    check("{{ lead.answers.butce }}", Some("5, 6"));
    check("{{ lead.answers['daire tipi'] }}", Some("2+1, 3+1"));
    check("{{ lead.attribution.utm_source }}", Some("fb"));
    check(
        "{{ lead.consent.kvkk }} {{ lead.consent.sms }}",
        Some("true false"),
    );
    check("{{ lead.created_at }}", Some("2026-01-02T03:04:05Z"));
    check("{{ lead.is_test }}", Some("false"));
    check(
        "{% for p in lead.problems %}{{ p.field }}:{{ p.code }}{% endfor %}",
        Some("email:not_valid"),
    );
    check(
        "{{ source }} {{ external_id }} {{ missing | join(',') }} {{ links.crm }}",
        Some("site src:1 email L-17"),
    );
}

#[test]
fn nothing_is_escaped_for_html() {
    check("{{ lead.message }}", Some("<b>Ömer & \"Ece\"</b>"));
}

#[test]
fn a_field_that_renders_to_nothing_is_left_out() {
    check("{{ lead.answers.no_such_question }}", None);
    check("{{ lead.answers.no.such.question }}", None);
    check("{{ lead.city }}", None);
    check(" \n{% if lead.city %}x{% endif %}\n", None);
    check("{{ none }}", None);
    check(
        "{{ lead.city | default('bilinmiyor') }}",
        Some("bilinmiyor"),
    );
    check("\n  a\n  b\n", Some("a\n  b"));
}

#[test]
fn a_slip_is_met_when_the_template_is_saved() {
    check_refused("{{ led.phone }}", None, "f: `led.phone` is not known here");
    check_refused(
        "{{ lead.fullname }}",
        None,
        "f: `lead.fullname` is not known here",
    );
    check_refused("{{ lead.phone", None, "f: unexpected end of input");
    check_refused("{{ lead.phone | e164 }}", None, "f: filter e164 is unknown");
    check_refused(
        "{% if not lead.phone %}{{ 1 is phone }}{% endif %}",
        None,
        "f: test phone is unknown",
    );
    check_refused("{{ namespace() }}", None, "f: namespace is unknown");
    check_refused("{{ debug() }}", None, "f: debug is unknown");
    check_refused("{% include 'x' %}", None, "f: it includes another");
    check_refused("{% extends lead.phone %}", None, "f: it includes another");
    check_refused("{% include 'template' %}", None, "f: it includes another");
    check_refused(
        &"x".repeat(16 * 1024 + 1),
        None,
        "f: the template is longer",
    );
    check_refused(
        "x",
        Some(&"1".repeat(1025)),
        "when: the condition is longer",
    );
    check_refused(
        "x",
        Some("lead.ciyt == 'x'"),
        "when: `lead.ciyt` is not known",
    );
    check_refused("x", Some("lead.city =="), "when: ");
    check_refused("x", Some("1 }}{{ 2"), "when: ");
    let both = Mapping::compile(
        &BTreeMap::from([
            ("a".to_owned(), "{{".to_owned()),
            ("b".to_owned(), "{{ x }}".to_owned()),
        ]),
        Some("y"),
    )
    .expect_err("three mistakes");
    let fields: Vec<_> = both.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(fields, ["a", "b", "when"]);
}

#[test]
fn conditions_decide_whether_a_step_applies() {
    for (when, wanted) in [
        (None, true),
        (Some("lead.phone"), true),
        (Some("not lead.phone"), false),
        (Some("lead.city"), false),
        (
            Some("lead.answers.butce == '5, 6' and source == 'site'"),
            true,
        ),
        (Some("'email' in missing"), true),
        (Some("lead.consent.sms"), false),
        (Some("lead.answers.nothing.at.all"), false),
        (Some("'%}' == '%}'"), true),
    ] {
        let mapping = compile("x", when).expect("compiles");
        let applies = with_context(&lead(), |c| mapping.applies(c));
        assert_eq!(applies, Ok(wanted), "{when:?}");
    }
}

#[test]
fn a_render_that_costs_too_much_is_stopped() {
    let twice = "{% for a in range(1000) %}{% for b in range(1000) %}x{% endfor %}{% endfor %}";
    check_refused(twice, None, "f: engine ran out of fuel");
    let depends =
        "{% for a in lead.message %}{% for b in lead.message %}{{ a }}{% endfor %}{% endfor %}";
    let mapping = compile(depends, None).expect("compiles");
    let long = Lead {
        message: Some("m".repeat(1000)),
        ..lead()
    };
    let error = with_context(&long, |c| mapping.render(c)).expect_err("too much");
    assert_eq!(
        error.to_string(),
        "f: the template does too much work (line 1)"
    );
}

/// What overflows a small stack, in the worst form the limits allow (dependencies.md, templates).
#[test]
fn deep_sources_do_not_overflow_the_stack() {
    let deep = |open: &str, middle: &str, close: &str| {
        let room = (template::MAX_TEMPLATE_BYTES - 8 - middle.len()) / (open.len() + close.len());
        format!(
            "{{{{{}{middle}{}}}}}",
            open.repeat(room),
            close.repeat(room)
        )
    };
    for source in [
        deep("- ", "1", ""),
        deep("-", "1", ""),
        deep("not ", "1", ""),
        deep("(", "1", ")"),
        deep("[", "1", "]"),
        deep("{1:", "1", "}"),
        deep("1 if 1 else ", "1", ""),
        deep("1**", "1", ""),
        deep("", "1", "|string"),
        deep("", "lead", ".a"),
        deep("", "lead", "[0]"),
        deep("a(", "1", ")"),
        deep("1+", "1", ""),
        deep("1<", "1", ""),
    ] {
        // Whether it compiles is the engine's affair; the process has to survive it, on a small stack and in a drop too.
        drop(compile(&source, None).map(|m| with_context(&lead(), |c| m.render(c))));
        let when = source.trim_matches(['{', '}']);
        let when = &when[..when.len().min(1024)];
        drop(compile("x", Some(when)).map(|m| with_context(&lead(), |c| m.applies(c))));
    }
}

#[test]
fn errors_at_run_time_say_nothing_of_the_lead() {
    let secret = Lead {
        message: Some("gizli".into()),
        ..lead()
    };
    for source in [
        "{{ lead.message | int }}",
        "{{ lead.message + 1 }}",
        "{{ lead.message.gizlice() }}",
        "{{ lead.message | round }}",
        "{{ lead.message | float }}",
        "{{ 1 | default(*lead.message) }}",
        "{{ '%d' | format(lead.message) }}",
        "{{ [1] | join(lead.message) | batch(lead.message) }}",
        "{{ lead.message in 3 }}",
        "{% for a, b in lead.message | list %}{% endfor %}",
        "{{ lead.answers | map(lead.message) | list }}",
        "{{ lead.answers | select(lead.message) | list }}",
    ] {
        let Ok(mapping) = compile(source, None) else {
            continue;
        };
        if let Err(error) = with_context(&secret, |c| mapping.render(c)) {
            assert!(!error.to_string().contains("gizli"), "{source}: {error}");
            assert_eq!(error.field, "f");
        }
    }
}

#[track_caller]
fn check_url(source: &str, id: &str, wanted: Result<&str, &str>) {
    let url = Template::compile_url(source).expect(source);
    let rendered = url.render(&BTreeMap::from([("id", id)]));
    match (rendered, wanted) {
        (Ok(text), Ok(wanted)) => assert_eq!(text, wanted),
        (Err(error), Err(wanted)) => assert!(error.to_string().starts_with(wanted), "{error}"),
        (rendered, _) => panic!("{source}: {rendered:?}"),
    }
}

#[test]
fn values_in_urls_are_encoded() {
    check_url("/leads/{{ id }}", "17", Ok("/leads/17"));
    check_url(
        "/leads/{{ id }}",
        "a/b?c#d&e=f%",
        Ok("/leads/a%2Fb%3Fc%23d%26e%3Df%25"),
    );
    check_url(
        "/x?q={{ id }}",
        "+90 532 ş",
        Ok("/x?q=%2B90%20532%20%C5%9F"),
    );
    check_url("/x?q={{ id | urlencode }}", "a b", Ok("/x?q=a%20b"));
    check_url(
        "{% set p %}{{ id }}/{% endset %}{{ p }}",
        "a b",
        Ok("a%20b/"),
    );
    check_url("/x?q={{ id ~ ' ' }}", "/", Ok("/x?q=%2F%20"));
    check_url("{{ id | safe }}", "/a/b", Ok("/a/b"));
    check_url("/x?q={{ other | default('') }}", "", Ok("/x?q="));
    check_url("/x/{{ other }}", "", Err("a value it needs is missing"));
    check_url("/x/{{ id }}", "..", Err("the path has a segment"));
    check_url("/x/.{{ id }}/y", ".", Err("the path has a segment"));
    check_url(
        "/x/{{ id | safe }}",
        "%2E%2e",
        Err("the path has a segment"),
    );
    check_url("/x/{{ id }}?q=/../", "..a", Ok("/x/..a?q=/../"));
    let text = Template::compile("{{ id | urlencode }}").expect("compiles");
    assert_eq!(
        text.render(&BTreeMap::from([("id", "a/b")])),
        Ok("a%2Fb".into())
    );
    assert!(text.check_names(&["id"]).is_ok());
    assert!(text.check_names(&["lead"]).is_err());
}

/// Pieces that make a template likelier than letters drawn at random do.
fn template_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "{{",
            "}}",
            "{%",
            "%}",
            "{#",
            "#}",
            " if ",
            " for x in ",
            "endif",
            "endfor",
            "else",
            "lead",
            ".phone",
            "answers",
            "[",
            "]",
            "(",
            ")",
            "|",
            "join",
            "format",
            "%s%999d",
            "'",
            "\"",
            "-",
            "not ",
            "range(9)",
            "**",
            "//",
            "%",
            "1",
            "99999999999999999999",
            "1e999",
            "set y = ",
            "~",
            "loop",
            "\0",
            "\\u",
            "raw",
            "endraw",
            " in ",
            " is ",
            "recursive",
            ":",
            ",",
            "slice(0)",
            "batch(0)",
            "indent(99)",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_template_text_panics(source in template_text()) {
        for source in [&source, &format!("{{{{ {source} }}}}"), &format!("{{% if {source} %}}{{% endif %}}")] {
            if let Ok(mapping) = compile(source, None) {
                let _ = with_context(&lead(), |c| mapping.render(c));
            }
            if let Ok(mapping) = compile("x", Some(source)) {
                let _ = with_context(&lead(), |c| mapping.applies(c));
            }
            if let Ok(url) = Template::compile_url(source) {
                let _ = with_context(&lead(), |c| url.render(c));
            }
        }
    }

    #[test]
    fn an_encoded_value_stays_one_segment(id in any::<String>()) {
        let url = Template::compile_url("/l/{{ id }}").expect("compiles");
        match url.render(&BTreeMap::from([("id", &id)])) {
            Ok(text) => {
                prop_assert!(text.starts_with("/l/"));
                prop_assert!(!text["/l/".len()..].contains(['/', '?', '#', '\\', ' ', '&']));
            }
            Err(_) => prop_assert!(id == "." || id == ".."),
        }
    }
}
