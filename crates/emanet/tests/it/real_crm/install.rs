//! Brings a real CRM (BottleCRM, the PyPI package `django-crm`) to life for one test: a Python environment kept under `target`, a
//! PostgreSQL cluster and a web server of its own, gone when dropped.

use crate::wait::until_true;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

const PACKAGES: [&str; 2] = ["django-crm==1.35.0", "packaging"];
/// Tables straight from the models (the migrations take minutes), background work in line (no broker needed).
const SETTINGS: &str = "\
from crm.settings import *

class _NoMigrations(dict):
    def __contains__(self, k): return True
    def __getitem__(self, k): return None

MIGRATION_MODULES = _NoMigrations()
CELERY_TASK_ALWAYS_EAGER = True
";
/// An organisation, an administrator and a token; the API cannot make the first one.
const BOOTSTRAP: &str = "\
from django.contrib.auth import get_user_model
from common.models import Org, Profile, PersonalAccessToken
from django.db import connection
user, _ = get_user_model().objects.get_or_create(email='relay@example.test', defaults={'is_active': True})
org, _ = Org.objects.get_or_create(name='Relay Test Org')
with connection.cursor() as cursor:
    cursor.execute(\"select set_config('app.current_org', %s, false)\", [str(org.id)])
profile, _ = Profile.objects.get_or_create(user=user, org=org, defaults={'role': 'ADMIN', 'is_active': True})
profile.role = 'ADMIN'; profile.is_organization_admin = True; profile.save()
print('TOKEN', PersonalAccessToken.generate(profile, 'relay', scopes=[])[0])
";

/// A free port may be taken by somebody else before the database listens on it.
const STARTS: u32 = 5;

/// What the machine has for it.
pub(super) struct Tools {
    python: PathBuf,
    postgres: PathBuf,
}

impl Tools {
    /// Looks for Python 3.12 or newer and PostgreSQL's programs.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn find() -> Result<Self, String> {
        let python = pythons()
            .into_iter()
            .find(|p| is_new_enough(p))
            .ok_or("no Python 3.12 or newer with venv")?;
        let versions = std::fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten();
        let postgres = versions
            .map(|v| v.path().join("bin"))
            .filter(|bin| bin.join("initdb").exists())
            .max();
        Ok(Self {
            python,
            postgres: postgres.ok_or("no PostgreSQL server programs")?,
        })
    }
}

fn pythons() -> Vec<PathBuf> {
    let named = [
        "python3",
        "python3.12",
        "python3.13",
        "python3.14",
        "python3.15",
    ]
    .map(PathBuf::from);
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let versions = std::fs::read_dir(home.join(".pyenv/versions"))
        .into_iter()
        .flatten()
        .flatten();
    let mut kept: Vec<PathBuf> = versions.map(|v| v.path().join("bin/python")).collect();
    kept.sort();
    named.into_iter().chain(kept.into_iter().rev()).collect()
}

fn is_new_enough(python: &Path) -> bool {
    let check = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))";
    let status = Command::new(python)
        .args(["-c", check])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|s| s.success())
}

/// The folder everything of it is kept in between runs.
pub(super) fn folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it is inside the target folder");
    let folder = target.join("real-crm");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The CRM, running.
pub(super) struct RealCrm {
    dir: TempDir,
    postgres: PathBuf,
    web: Option<Child>,
    pub(super) url: String,
    pub(super) token: String,
}

impl RealCrm {
    pub(super) fn start(tools: &Tools) -> Self {
        let programs = environment(&tools.python);
        let dir = TempDir::with_prefix("real-crm-").unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let web_port = free_port();
        let mut crm = Self {
            dir,
            postgres: tools.postgres.clone(),
            web: None,
            url: format!("http://127.0.0.1:{web_port}"),
            token: String::new(),
        };
        let database_port = crm.start_database();
        std::fs::write(crm.run_dir().join("fastcrm_settings.py"), SETTINGS).unwrap();
        std::fs::write(crm.run_dir().join("bootstrap.py"), BOOTSTRAP).unwrap();
        let in_crm = |program: &str, words: &[&str]| {
            let mut command = Command::new(programs.join(program));
            command
                .args(words)
                .current_dir(crm.run_dir())
                .envs(variables(database_port))
                .env("PYTHONPATH", crm.run_dir());
            command
        };
        well(
            in_crm("django-admin", &["migrate", "--run-syncdb", "-v", "0"])
                .output()
                .unwrap(),
        );
        let script = std::fs::File::open(crm.run_dir().join("bootstrap.py")).unwrap();
        let said = well(
            in_crm("django-admin", &["shell", "-v", "0"])
                .stdin(script)
                .output()
                .unwrap(),
        );
        let token = said
            .split_whitespace()
            .skip_while(|word| *word != "TOKEN")
            .nth(1)
            .map(str::to_owned);
        let log = std::fs::File::create(crm.run_dir().join("web.log")).unwrap();
        let address = format!("127.0.0.1:{web_port}");
        let web = in_crm(
            "gunicorn",
            &["crm.wsgi:application", "-w", "2", "-b", &address],
        )
        .stdout(Stdio::null())
        .stderr(log)
        .spawn();
        crm.web = Some(web.unwrap());
        crm.token = token.expect("the bootstrap prints a token");
        let health = format!("{}/healthz/", crm.url);
        until_true("the CRM is ready", || {
            crate::http::request("GET", &health, &[], b"").is_ok_and(|a| a.status == 200)
        });
        crm
    }

    fn run_dir(&self) -> PathBuf {
        let dir = self.dir.path().join("run");
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// The port it listens on.
    fn start_database(&self) -> u16 {
        let home = self.dir.path().join("postgres");
        std::fs::create_dir(&home).unwrap();
        if is_root() {
            well(
                Command::new("chown")
                    .arg("postgres")
                    .arg(&home)
                    .output()
                    .unwrap(),
            );
        }
        let (bin, data) = (self.postgres.display(), home.join("data"));
        well(self.as_postgres(&format!(
            "{bin}/initdb --no-sync --auth=trust --username=postgres -D {} > /dev/null",
            data.display()
        )));
        let port = self.start_server(&home);
        let psql = |statement: &str| {
            let mut command = Command::new(self.postgres.join("psql"));
            command.args([
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
                "-U",
                "postgres",
                "-qc",
                statement,
            ]);
            well(command.output().unwrap());
        };
        // Not a superuser: its tenants are kept apart by row-level security.
        psql("create role crm_app login password 'crm_app_pw' nosuperuser");
        psql("create database crm owner crm_app");
        port
    }

    /// Starts the server on a free port, on another one if that fails; panics with the server's own words if it never starts.
    fn start_server(&self, home: &Path) -> u16 {
        let (bin, data, log) = (self.postgres.display(), home.join("data"), home.join("log"));
        for _ in 0..STARTS {
            let port = free_port();
            let options = format!(
                "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off",
                home.display()
            );
            let started = self.as_postgres(&format!(
                "{bin}/pg_ctl -w -D {} -l {} -o '{options}' start > /dev/null",
                data.display(),
                log.display()
            ));
            if started.status.success() {
                return port;
            }
            // A start that was only slow would stand in the next one's way.
            self.stop_server();
        }
        let said = std::fs::read(&log).unwrap_or_default();
        panic!(
            "PostgreSQL did not start in {STARTS} attempts:\n{}",
            String::from_utf8_lossy(&said)
        );
    }

    /// Whether it stopped; it may not have been running.
    fn stop_server(&self) -> bool {
        let data = self.dir.path().join("postgres/data");
        let stopped = self.as_postgres(&format!(
            "{}/pg_ctl -D {} -m immediate stop > /dev/null",
            self.postgres.display(),
            data.display()
        ));
        stopped.status.success()
    }

    /// PostgreSQL refuses to run as root.
    fn as_postgres(&self, line: &str) -> Output {
        let mut command = if is_root() {
            Command::new("su")
        } else {
            Command::new("sh")
        };
        if is_root() {
            command.args(["postgres", "-s", "/bin/sh"]);
        }
        command
            .args(["-c", line])
            .current_dir("/")
            .output()
            .expect("a shell can be run")
    }
}

impl Drop for RealCrm {
    /// Never panics: a second panic while a failed test unwinds would end every other test with it.
    fn drop(&mut self) {
        if let Some(mut web) = self.web.take() {
            let _ = Command::new("kill").arg(web.id().to_string()).status();
            let _ = web.wait();
        }
        if !self.stop_server() {
            eprintln!("the CRM's database was not running when its test ended");
        }
    }
}

/// The folder of the programs; installed once per Python and kept.
fn environment(python: &Path) -> PathBuf {
    let version = well(
        Command::new(python)
            .args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
            .output()
            .unwrap(),
    );
    let venv = folder().join(format!("venv-{}", version.trim()));
    let ready = venv.join("ready");
    if !ready.exists() {
        well(
            Command::new(python)
                .args(["-m", "venv", "--clear"])
                .arg(&venv)
                .output()
                .unwrap(),
        );
        let mut pip = Command::new(venv.join("bin/pip"));
        well(
            pip.args(["install", "--quiet", "--disable-pip-version-check"])
                .args(PACKAGES)
                .output()
                .unwrap(),
        );
        std::fs::write(&ready, PACKAGES.join("\n")).unwrap();
    }
    venv.join("bin")
}

fn variables(database_port: u16) -> Vec<(&'static str, String)> {
    let fixed = [
        (
            "SECRET_KEY",
            "only-for-tests-0123456789abcdef0123456789abcdef",
        ),
        ("ENV_TYPE", "dev"),
        ("DEBUG", "False"),
        ("ALLOWED_HOSTS", "127.0.0.1"),
        ("DBNAME", "crm"),
        ("DBUSER", "crm_app"),
        ("DBPASSWORD", "crm_app_pw"),
        ("DBHOST", "127.0.0.1"),
        ("DJANGO_SETTINGS_MODULE", "fastcrm_settings"),
    ];
    let fixed = fixed
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()));
    fixed
        .chain([("DBPORT", database_port.to_string())])
        .collect()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

fn is_root() -> bool {
    well(Command::new("id").arg("-u").output().unwrap()).trim() == "0"
}

/// The output of a command that must succeed.
fn well(output: Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}
