//! What a person's browser is shown.

use emanet_core::event::Inbound;

/// Gives every view of a form a submission id of its own.
pub(super) const SCRIPT: &str = include_str!("script.js");

/// What somebody sees who opens the address.
pub(super) const ABOUT: &str = "This address takes submissions of a web form: send them with POST.\n\
    Bu adres bir web formunun gönderilerini alır: POST ile gönderin.\n";

const THANKS_EN: &str = include_str!("thanks.en.html");
const THANKS_TR: &str = include_str!("thanks.tr.html");

/// The thank-you page in the browser's language, Turkish or English.
pub(super) fn thanks(request: &Inbound) -> &'static str {
    let accepted = request.header("accept-language").unwrap_or_default();
    if weight(accepted, "tr") > weight(accepted, "en") {
        THANKS_TR
    } else {
        THANKS_EN
    }
}

/// Whether a browser sent a form, as opposed to a program: it takes a page, and before JSON.
pub(super) fn is_browser(request: &Inbound) -> bool {
    let accept = request.header("accept").unwrap_or_default();
    let page = accept.find("text/html");
    let json = accept.find("application/json");
    let content_type = request.header("content-type").unwrap_or_default();
    let is_form = [
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
    ]
    .iter()
    .any(|form| content_type.to_ascii_lowercase().starts_with(form));
    is_form && page.is_some_and(|page| json.is_none_or(|json| page < json))
}

/// How much a language is wanted, in thousandths; 0 if it is not named.
fn weight(accepted: &str, language: &str) -> u32 {
    accepted
        .split(',')
        .filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let tag = parts.next()?.split('-').next()?;
            let weight = parts.find_map(|p| p.strip_prefix("q="));
            let weight = weight.map_or(Some(1.0), |q| q.parse::<f32>().ok())?;
            tag.eq_ignore_ascii_case(language)
                .then_some((weight.clamp(0.0, 1.0) * 1_000.0) as u32)
        })
        .max()
        .unwrap_or(0)
}
