//! Which of a form's fields is what (phone-and-name.md 5): by the source's own table, else by synonyms, else by a hint in the
//! name that the value confirms. What nothing is known about stays an answer.

use super::turkish::fold;
use super::{Options, email, phone};
use crate::lead::PhoneKind;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    FullName,
    FirstName,
    LastName,
    /// `isim`, `name`: the full name, or the first where the form asks for the last one too.
    Name,
    /// `ad`: Turkish for first name (and, in small forms, for the name), English for advertisement.
    Ad,
    Phone,
    Email,
    City,
    /// A part of a city; stands in where no city is given.
    District,
    Message,
    /// A topic or note; stands in where no message is given.
    Topic,
    Consent,
    Attribution,
    /// Dropped, because the source's configuration says so.
    Ignored,
    Answer,
}

use Meaning::{
    Ad, Answer, Attribution, City, Consent, District, Email, FirstName, FullName, LastName,
    Message, Name, Phone, Topic,
};

/// Names by meaning, folded; as [`squeeze`] compares them, `e_mail` is `email`.
const SYNONYMS: &[(Meaning, &str)] = &[
    (
        FullName,
        "ad_soyad adi_soyadi adiniz_soyadiniz adiniz_ve_soyadiniz ad_ve_soyad ad_soyad_unvan isim_soyisim \
         isim_soyad isminiz_soyisminiz tam_ad tam_adiniz musteri_adi yetkili yetkili_adi full_name \
         your_full_name contact_name names",
    ),
    (Name, "isim isminiz name your_name"),
    (Ad, "ad adi adiniz"),
    (
        FirstName,
        "first_name given_name fname your_first_name names_first_name",
    ),
    (
        LastName,
        "soyad soyadi soyadiniz soyisim soyisminiz last_name surname family_name lname your_last_name \
         names_last_name",
    ),
    (
        Phone,
        "telefon tel tel_no telefon_no telefon_numarasi telefon_numaraniz telefonunuz telefonum cep cep_no \
         cep_tel cep_telefonu cep_telefonunuz cep_telefonu_numaraniz gsm gsm_no gsm_numarasi gsm_numaraniz \
         iletisim_numarasi iletisim_numaraniz iletisim numara numaraniz whatsapp whatsapp_no \
         whatsapp_numarasi whatsapp_numaraniz irtibat_no irtibat_numarasi size_ulasabilecegimiz_telefon phone \
         phone_number your_phone your_phone_number work_phone work_phone_number mobile mobile_phone \
         mobile_number cell cell_phone telephone your_tel contact_number whatsapp_number msisdn",
    ),
    (
        Email,
        "e_posta e_posta_adresi e_posta_adresiniz e_postaniz mail mail_adresi mail_adresiniz elektronik_posta \
         email work_email your_email your_mail email_address e_mail_adresi e_mail_adresiniz",
    ),
    (
        City,
        "il sehir iliniz sehriniz yasadiginiz_sehir yasadiginiz_il city your_city",
    ),
    (District, "ilce semt bolge region state postal_code"),
    (
        Message,
        "mesaj mesajiniz message your_message comments comment",
    ),
    (
        Topic,
        "not notunuz aciklama konu talebiniz sikayetiniz note subject your_subject",
    ),
    (
        Consent,
        "kvkk kvkk_onay kvkk_onayi aydinlatma_metni acik_riza acik_riza_onayi izin onay iletisim_izni \
         ticari_ileti ticari_elektronik_ileti ticari_ileti_onayi sms_izni arama_izni e_posta_izni consent \
         gdpr privacy privacy_policy acceptance opt_in marketing_consent optional",
    ),
    (
        Attribution,
        "kaynak nereden_duydunuz bizi_nereden_duydunuz gclid gbraid wbraid fbclid fbc fbp ttclid ttp msclkid \
         li_fat_id page_url landing_page referrer referer form_id form_name page_id ad_id ad_name adset_id \
         adset_name ad_group_id ad_group_name campaign_id campaign_name creative_id platform",
    ),
];

/// Words in a longer label that hint at what it asks for.
const PHONE_HINTS: &[&str] = &[
    "telefon", "tel", "cep", "gsm", "phone", "mobile", "whatsapp",
];
const EMAIL_HINTS: &[&str] = &["mail", "email", "eposta", "posta"];
const CONSENT_HINTS: &[&str] = &["kvkk", "riza", "gdpr", "consent", "aydinlatma"];
/// A number or the answer "no"; only as the whole name, for an order's number looks like a phone's.
const BARE_NUMBER: &str = "no";

static BY_NAME: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
    let pairs = |(meaning, names): &'static (Meaning, &str)| {
        names.split(' ').map(|name| (squeeze(name), *meaning))
    };
    SYNONYMS.iter().flat_map(pairs).collect()
});

const OURS: &[(&str, Meaning)] = &[
    ("full_name", FullName),
    ("first_name", FirstName),
    ("last_name", LastName),
    ("phone", Phone),
    ("email", Email),
    ("city", City),
    ("message", Message),
    ("consent", Consent),
    ("attribution", Attribution),
    ("answer", Answer),
    ("ignore", Meaning::Ignored),
];

/// The meaning a source's configuration names.
fn named(ours: &str) -> Option<Meaning> {
    OURS.iter()
        .find(|(name, _)| *name == ours)
        .map(|(_, meaning)| *meaning)
}

/// The words a source's configuration may use for what its fields are: `full_name`, …, `answer` (nothing special), `ignore`.
pub fn field_names() -> impl Iterator<Item = &'static str> {
    OURS.iter().map(|(name, _)| *name)
}

/// A field of the event with what it means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) meaning: Meaning,
    pub(super) key: String,
    pub(super) values: Vec<String>,
}

/// Gives every field its meaning.
pub(super) fn sort(fields: Vec<(String, Vec<String>)>, options: &Options) -> Vec<Field> {
    let mut fields: Vec<_> = fields
        .into_iter()
        .map(|(key, values)| Field {
            meaning: meaning(&key, &values, options),
            key,
            values,
        })
        .collect();
    settle_names(&mut fields);
    fields
}

/// Decides what `isim` and `ad` are, now that it is known which other name fields the form has.
fn settle_names(fields: &mut [Field]) {
    let has = |fields: &[Field], wanted: Meaning| fields.iter().any(|f| f.meaning == wanted);
    let has_last = has(fields, LastName);
    let has_full = has(fields, FullName) || has(fields, Name);
    for field in fields {
        field.meaning = match field.meaning {
            Name | Ad if has_last => FirstName,
            Ad if has_full => Answer,
            Name | Ad => FullName,
            other => other,
        };
    }
}

fn meaning(key: &str, values: &[String], options: &Options) -> Meaning {
    let words = words(key);
    let squeezed = words.concat();
    let configured = options.fields.get(key).or_else(|| {
        let same =
            |(name, _): &(&String, &String)| squeeze(name) == squeezed && !squeezed.is_empty();
        options.fields.iter().find(same).map(|(_, ours)| ours)
    });
    if let Some(meaning) = configured.and_then(|ours| named(ours)) {
        return meaning;
    }
    let known = by_name(&words, &squeezed).unwrap_or(Answer);
    let hints = |hints: &[&str]| words.iter().any(|word| hints.contains(&word.as_str()));
    let value = values.iter().find(|v| !v.trim().is_empty());
    match (known, value) {
        // "İletişim" and its like take whatever people prefer to be reached by.
        (Phone, Some(value)) if email::is_address(value) => Email,
        (Answer, Some(value))
            if (hints(PHONE_HINTS) || squeezed == BARE_NUMBER)
                && is_surely_a_phone(value, options) =>
        {
            Phone
        }
        (Answer, Some(value)) if hints(EMAIL_HINTS) && email::is_address(value) => Email,
        (Answer, Some(value)) if hints(CONSENT_HINTS) && is_ticked(value).is_some() => Consent,
        (known, _) => known,
    }
}

fn by_name(words: &[String], squeezed: &str) -> Option<Meaning> {
    if words.first().is_some_and(|word| word == "utm") && words.len() > 1 {
        return Some(Attribution);
    }
    if let Some(meaning) = BY_NAME.get(squeezed) {
        return Some(*meaning);
    }
    // Form builders number their fields: `tel-123`, `email-2`, `acceptance-456`, `optional_1`.
    let (last, rest) = words.split_last()?;
    let is_numbered = last.bytes().all(|b| b.is_ascii_digit());
    BY_NAME
        .get(&rest.concat())
        .copied()
        .filter(|meaning| is_numbered && matches!(meaning, Phone | Email | Consent | Message))
}

/// `no` may be a number or an answer, "telefon" a preference: only a valid number of a person's line settles it.
fn is_surely_a_phone(value: &str, options: &Options) -> bool {
    phone::read(value, &options.region)
        .phones
        .first()
        .is_some_and(|p| p.valid && matches!(p.kind, PhoneKind::Mobile | PhoneKind::Fixed))
}

/// A key's words, folded. A form builder's wrapper around the name (`form_fields[phone]`) is not one of them.
fn words(key: &str) -> Vec<String> {
    let words: Vec<String> = fold(key)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    match words.as_slice() {
        [form, fields, rest @ ..] if form == "form" && fields == "fields" && !rest.is_empty() => {
            rest.to_vec()
        }
        _ => words,
    }
}

/// A key as it is compared: folded letters and digits only, so that `E-Posta`, `eposta` and `ePosta` are one.
fn squeeze(key: &str) -> String {
    words(key).concat()
}

/// The key campaign facts are kept under: `UTM Source` is `utm_source`.
pub(super) fn attribution_key(key: &str) -> String {
    words(key).join("_")
}

/// Whether a consent box was ticked. `None` where the value does not say so beyond doubt: consent is never guessed.
pub(super) fn is_ticked(value: &str) -> Option<bool> {
    match words(value).join(" ").as_str() {
        "1"
        | "on"
        | "true"
        | "yes"
        | "y"
        | "evet"
        | "checked"
        | "accepted"
        | "accept"
        | "agree"
        | "i agree"
        | "agreed"
        | "kabul"
        | "kabul ediyorum"
        | "kabul ettim"
        | "onay"
        | "onayliyorum"
        | "onayladim"
        | "izin veriyorum"
        | "okudum"
        | "okudum anladim"
        | "okudum onayliyorum"
        | "okudum kabul ediyorum"
        | "okudum ve kabul ediyorum"
        | "okudum anladim kabul ediyorum" => Some(true),
        "" | "0" | "off" | "false" | "no" | "n" | "hayir" | "unchecked" | "declined"
        | "kabul etmiyorum" | "onaylamiyorum" | "izin vermiyorum" | "istemiyorum" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
