//! Who may see the console: a one-time login printed at start, traded for a session that ends by itself.

use crate::env::Env;
use emanet_core::secret::Secret;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Name of the session cookie.
const COOKIE: &str = "emanet_session";
/// A session ends this long after it began.
const SESSION: Duration = Duration::from_secs(12 * 3_600);

/// The one-time login: shown once, to whoever starts the server.
#[derive(Debug, Clone)]
pub struct Login(pub Secret);

/// Open sessions, by the hash of their cookie, and the login that was not used yet. In memory: a restart ends them.
#[derive(Debug)]
pub struct Sessions {
    login: Mutex<Option<[u8; 32]>>,
    open: Mutex<HashMap<[u8; 32], Timestamp>>,
}

impl Sessions {
    /// None open, and a fresh login.
    pub fn new(env: &Env) -> (Self, Login) {
        let token = token(env);
        let sessions = Self {
            login: Mutex::new(Some(hash(&token))),
            open: Mutex::default(),
        };
        (sessions, Login(Secret::new(token)))
    }

    /// Opens a session for the login; it works once. Returns the `Set-Cookie` value.
    pub fn redeem(&self, login: &str, env: &Env) -> Option<String> {
        let mut waiting = self.login.lock().unwrap_or_else(PoisonError::into_inner);
        // Comparing hashes of random tokens tells nothing about the token, whatever time it takes.
        waiting.take_if(|expected| *expected == hash(login))?;
        let cookie = token(env);
        let until = env.now().saturating_add(SESSION).unwrap_or(Timestamp::MAX);
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(hash(&cookie), until);
        Some(format!(
            "{COOKIE}={cookie}; Path=/console; HttpOnly; SameSite=Strict; Max-Age={}",
            SESSION.as_secs()
        ))
    }

    /// Whether a `Cookie` header carries an open session.
    pub fn knows(&self, cookies: &str, now: Timestamp) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, until| now < *until);
        let mut values = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        values.any(|(name, value)| name == COOKIE && open.contains_key(&hash(value)))
    }
}

/// 256 random bits as text.
fn token(env: &Env) -> String {
    env.bytes::<32>()
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string cannot fail");
            text
        })
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_works_once_and_a_session_ends_by_itself() {
        let env = Env::seeded(1);
        let (sessions, login) = Sessions::new(&env);
        assert_eq!(sessions.redeem("wrong", &env), None);
        let cookie = sessions.redeem(login.0.expose(), &env).unwrap();
        assert_eq!(sessions.redeem(login.0.expose(), &env), None);
        let cookie = cookie.split(';').next().unwrap();
        assert!(sessions.knows(&format!("a=b; {cookie}"), env.now()));
        assert!(!sessions.knows("emanet_session=", env.now()));
        assert!(!sessions.knows(cookie, env.now().saturating_add(SESSION).unwrap()));
    }
}
