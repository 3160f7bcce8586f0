//! The one table of error codes the API speaks (API-1 … API-5).
//!
//! A code is a contract: programs branch on it, so its text and status never change and it is never used for anything else; a
//! retired one stays here, marked. Messages and hints are for people, in both languages, and may be reworded.

/// Language of messages and hints (API-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Turkish.
    Tr,
}

/// Who must act on an error (API-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The caller: the request must be changed before it is sent again.
    Client,
    /// We: the caller did nothing wrong.
    Server,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// The code: `DOMAIN-AREA-NNNN`.
    pub text: &'static str,
    /// The HTTP status it is answered with.
    pub status: u16,
    /// Whether the same request may be sent again later: after `Retry-After` where there is one, else with growing pauses, and
    /// only if it is idempotent or carries an `Idempotency-Key` (API-7).
    pub is_retryable: bool,
    en: Texts,
    tr: Texts,
}

#[derive(Debug, PartialEq, Eq)]
struct Texts {
    message: &'static str,
    hint: &'static str,
}

impl Code {
    /// Who must act.
    pub fn side(&self) -> Side {
        if self.status < 500 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// What is wrong.
    pub fn message(&self, language: Language) -> &'static str {
        self.texts(language).message
    }

    /// What to do about it.
    pub fn hint(&self, language: Language) -> &'static str {
        self.texts(language).hint
    }

    fn texts(&self, language: Language) -> &Texts {
        match language {
            Language::En => &self.en,
            Language::Tr => &self.tr,
        }
    }
}

/// The row of a code.
pub fn find(text: &str) -> Option<&'static Code> {
    ALL.iter().copied().find(|code| code.text == text)
}

/// The licence gate of a module (`CRM`, `ADS`, …), if there is such a module (API-5).
pub fn licence(module: &str) -> Option<&'static Code> {
    find(&format!("{module}-LIC-0001"))
}

macro_rules! table {
    ($($(#[$doc:meta])* $name:ident $text:literal $status:literal $again:ident
        en [$en:expr, $en_hint:expr] tr [$tr:expr, $tr_hint:expr];)*) => {
        $($(#[$doc])* pub static $name: Code = Code {
            text: $text,
            status: $status,
            is_retryable: table!($again),
            en: Texts { message: $en, hint: $en_hint },
            tr: Texts { message: $tr, hint: $tr_hint },
        };)*

        /// Every row, in the order of the table.
        pub static ALL: &[&Code] = &[$(&$name),*];
    };
    (again) => { true };
    (never) => { false };
}

const UNLICENSED_EN: &str = "This module is not licensed for the workspace.";
const UNLICENSED_TR: &str = "Bu modül çalışma alanı için lisanslı değil.";
/// The same for all modules and languages: a program may look at it (API-5).
const UNLICENSED_HINT: &str = "module_not_licensed";

table! {
    /// Unexpected internal error.
    INTERNAL "CORE-SYS-0001" 500 again
        en ["Something unexpected went wrong here.", "Try again; if it happens again, report it with the trace id."]
        tr ["Burada beklenmeyen bir hata oluştu.", "Yeniden deneyin; tekrarlanırsa izleme numarasıyla bildirin."];
    /// A dependency is away for the moment.
    UNAVAILABLE "CORE-SYS-0002" 503 again
        en ["A part of the service is away for the moment.", "Send the same request again after the time in Retry-After."]
        tr ["Hizmetin bir bölümü şu anda kullanılamıyor.", "Aynı isteği Retry-After süresinden sonra yeniden gönderin."];
    /// It took too long.
    TIMEOUT "CORE-SYS-0003" 504 again
        en ["It took too long.", "Send the same request again, with the same Idempotency-Key if it had one."]
        tr ["İşlem çok uzun sürdü.", "Aynı isteği, varsa aynı Idempotency-Key ile yeniden gönderin."];
    /// No such endpoint or feature; an unknown route too.
    NO_SUCH_ENDPOINT "CORE-SYS-0004" 501 never
        en ["There is no such endpoint.", "Check the path and the version in the address."]
        tr ["Böyle bir uç nokta yok.", "Adresteki yolu ve sürümü kontrol edin."];

    /// Malformed, or a required field is missing.
    MALFORMED "CORE-REQ-0001" 400 never
        en ["The request cannot be read, or something required is missing.", "See the details for what to correct."]
        tr ["İstek okunamadı ya da gerekli bir alan eksik.", "Düzeltilecekler için ayrıntılara bakın."];
    /// Present but not valid.
    INVALID "CORE-REQ-0002" 422 never
        en ["Some values are not valid.", "See the details for what to correct."]
        tr ["Bazı değerler geçerli değil.", "Düzeltilecekler için ayrıntılara bakın."];
    /// No such resource, or one outside the workspace.
    NOT_FOUND "CORE-REQ-0003" 404 never
        en ["There is no such thing here.", "Check the id and the workspace."]
        tr ["Burada böyle bir kayıt yok.", "Kimlik numarasını ve çalışma alanını kontrol edin."];
    /// The present state does not allow it.
    CONFLICT "CORE-REQ-0004" 409 never
        en ["The present state does not allow it.", "Load the current state and decide again."]
        tr ["Şu anki durum buna izin vermiyor.", "Güncel durumu yükleyip yeniden karar verin."];
    /// The idempotency key was used with another body.
    KEY_REUSED "CORE-REQ-0005" 409 never
        en ["This idempotency key was used with a different request.", "Take a new key for a new request; send the old one unchanged to get its answer again."]
        tr ["Bu Idempotency-Key başka bir istekle kullanılmış.", "Yeni istek için yeni bir anahtar kullanın; eski yanıtı almak için eski isteği değiştirmeden gönderin."];
    /// The body is over the limit.
    TOO_LARGE "CORE-REQ-0006" 413 never
        en ["The body is larger than allowed.", "Send less at once."]
        tr ["Gövde izin verilenden büyük.", "Tek seferde daha az gönderin."];
    /// The route does not have this method.
    METHOD "CORE-REQ-0007" 405 never
        en ["The method is not allowed here.", "Use one of those in the Allow header."]
        tr ["Bu yöntem burada kullanılamaz.", "Allow başlığındaki yöntemlerden birini kullanın."];
    /// The content type or encoding is not supported.
    MEDIA_TYPE "CORE-REQ-0008" 415 never
        en ["The body's type or encoding is not supported.", "Send it uncompressed, in a supported content type."]
        tr ["Gövdenin türü veya kodlaması desteklenmiyor.", "Sıkıştırmadan, desteklenen bir içerik türüyle gönderin."];

    /// No identity, or not a valid one.
    UNAUTHENTICATED "CORE-AUTH-0001" 401 never
        en ["The identity is missing or not valid.", "Check the key or the signing secret on both sides."]
        tr ["Kimlik eksik veya geçersiz.", "Anahtarı ya da imza parolasını iki tarafta da kontrol edin."];
    /// A valid identity that may not.
    FORBIDDEN "CORE-AUTH-0002" 403 never
        en ["This identity may not do that.", "Ask an administrator for the permission."]
        tr ["Bu kimliğin buna yetkisi yok.", "Yöneticiden yetki isteyin."];
    /// Too many requests.
    RATE_LIMITED "CORE-RATE-0001" 429 again
        en ["Too many requests.", "Wait for the time in Retry-After, then send at a slower pace."]
        tr ["Çok fazla istek gönderildi.", "Retry-After süresi kadar bekleyin, sonra daha seyrek gönderin."];

    /// The workspace could not be resolved.
    NO_WORKSPACE "CORE-TENANT-0001" 404 never
        en ["There is no such workspace.", "Check the key, or the X-Workspace header."]
        tr ["Böyle bir çalışma alanı yok.", "Anahtarı ya da X-Workspace başlığını kontrol edin."];
    /// The workspace is suspended.
    SUSPENDED "CORE-TENANT-0002" 403 never
        en ["The workspace is suspended.", "Ask an administrator to reactivate it; leads are stored meanwhile."]
        tr ["Çalışma alanı askıya alınmış.", "Yöneticiden yeniden açmasını isteyin; adaylar bu sırada saklanır."];
    /// A tenant-scoped endpoint was called without a tenant.
    WORKSPACE_MISSING "CORE-TENANT-0003" 400 never
        en ["The request does not say which workspace it is for.", "Name it in the X-Workspace header."]
        tr ["İstekte hangi çalışma alanı için olduğu belirtilmemiş.", "X-Workspace başlığında belirtin."];

    /// Licence gate: CRM destinations.
    CRM_LICENCE "CRM-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: ERP destinations.
    ERP_LICENCE "ERP-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: shop sources.
    SHOP_LICENCE "SHOP-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: partner exchange.
    B2B_LICENCE "B2B-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: ad sources, reconciliation, conversion feedback.
    ADS_LICENCE "ADS-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: messages and first contact.
    MSG_LICENCE "MSG-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: web forms and form builders.
    FORM_LICENCE "FORM-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
    /// Licence gate: reports and exports.
    REP_LICENCE "REP-LIC-0001" 403 never
        en [UNLICENSED_EN, UNLICENSED_HINT] tr [UNLICENSED_TR, UNLICENSED_HINT];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API-1, API-3, API-5: a code is a contract. A line that changes or goes here breaks somebody's program; new ones are added.
    #[test]
    fn codes_and_statuses_never_change() {
        let rows: Vec<_> = ALL.iter().map(|code| (code.text, code.status)).collect();
        assert_eq!(
            rows,
            [
                ("CORE-SYS-0001", 500),
                ("CORE-SYS-0002", 503),
                ("CORE-SYS-0003", 504),
                ("CORE-SYS-0004", 501),
                ("CORE-REQ-0001", 400),
                ("CORE-REQ-0002", 422),
                ("CORE-REQ-0003", 404),
                ("CORE-REQ-0004", 409),
                ("CORE-REQ-0005", 409),
                ("CORE-REQ-0006", 413),
                ("CORE-REQ-0007", 405),
                ("CORE-REQ-0008", 415),
                ("CORE-AUTH-0001", 401),
                ("CORE-AUTH-0002", 403),
                ("CORE-RATE-0001", 429),
                ("CORE-TENANT-0001", 404),
                ("CORE-TENANT-0002", 403),
                ("CORE-TENANT-0003", 400),
                ("CRM-LIC-0001", 403),
                ("ERP-LIC-0001", 403),
                ("SHOP-LIC-0001", 403),
                ("B2B-LIC-0001", 403),
                ("ADS-LIC-0001", 403),
                ("MSG-LIC-0001", 403),
                ("FORM-LIC-0001", 403),
                ("REP-LIC-0001", 403),
            ]
        );
    }

    /// API-1: `DOMAIN-AREA-NNNN`, each once.
    #[test]
    fn codes_are_well_formed_and_unique() {
        for (n, code) in ALL.iter().enumerate() {
            let parts: Vec<_> = code.text.split('-').collect();
            let [domain, area, number] = parts[..] else {
                panic!("{} has not three parts", code.text);
            };
            let is_domain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            assert!(
                !domain.is_empty() && domain.chars().all(is_domain),
                "{}",
                code.text
            );
            assert!(
                !area.is_empty() && area.chars().all(|c| c.is_ascii_uppercase()),
                "{}",
                code.text
            );
            assert!(
                number.len() == 4 && number.chars().all(|c| c.is_ascii_digit()),
                "{}",
                code.text
            );
            assert!(
                ALL[..n].iter().all(|other| other.text != code.text),
                "{} twice",
                code.text
            );
            assert_eq!(find(code.text), Some(*code));
        }
        assert_eq!(find("CORE-SYS-9999"), None);
    }

    /// API-2: every text is there in both languages, and they are not the same text.
    #[test]
    fn every_code_speaks_both_languages() {
        for code in ALL {
            let [en, tr] = [Language::En, Language::Tr].map(|l| [code.message(l), code.hint(l)]);
            let is_licence = licence(code.text.split('-').next().unwrap()) == Some(*code);
            for (en, tr) in en.into_iter().zip(tr) {
                if is_licence && en == "module_not_licensed" {
                    assert_eq!(en, tr, "{}", code.text);
                } else {
                    assert_ne!(en, tr, "{}", code.text);
                    assert!(en.ends_with('.') && tr.ends_with('.'), "{}", code.text);
                    assert!(en.is_ascii(), "{}: {en}", code.text);
                }
            }
        }
    }

    /// API-4, API-7: who must act follows from the status; only what may pass by itself is worth sending again.
    #[test]
    fn only_what_passes_by_itself_is_retryable() {
        for code in ALL {
            let side = if code.status >= 500 {
                Side::Server
            } else {
                Side::Client
            };
            assert_eq!(code.side(), side, "{}", code.text);
            let passes = [408, 429, 500, 502, 503, 504].contains(&code.status);
            assert_eq!(code.is_retryable, passes, "{}", code.text);
        }
    }

    /// API-5: one gate for each of the eight modules, and the same hint for all.
    #[test]
    fn each_module_has_its_licence_gate() {
        for module in ["CRM", "ERP", "SHOP", "B2B", "ADS", "MSG", "FORM", "REP"] {
            let code = licence(module).unwrap();
            assert_eq!(code.text, format!("{module}-LIC-0001"));
            assert_eq!(code.status, 403);
            assert_eq!(code.hint(Language::Tr), "module_not_licensed");
        }
        assert_eq!(licence("CORE"), None);
        assert_eq!(ALL.iter().filter(|c| c.text.contains("-LIC-")).count(), 8);
    }
}
