-- Ids are 16-byte UUIDs, times microseconds since 1970, documents JSON as text. A target is one byte ('s' or 'd') and the
-- id of the source or destination. Every key begins with the workspace; `revision` and `schema_version` belong to the installation.

-- ---- configuration -----------------------------------------------------------------------------------------------------

CREATE TABLE revision (
    number INTEGER NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL,
    document BLOB NOT NULL,
    applied_by TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE workspace (
    workspace_id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

CREATE TABLE source (
    workspace_id BLOB NOT NULL REFERENCES workspace,
    source_id BLOB NOT NULL,
    name TEXT NOT NULL,
    token BLOB NOT NULL,
    PRIMARY KEY (workspace_id, source_id),
    UNIQUE (workspace_id, name)
) STRICT;

CREATE TABLE destination (
    workspace_id BLOB NOT NULL REFERENCES workspace,
    destination_id BLOB NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (workspace_id, destination_id),
    UNIQUE (workspace_id, name)
) STRICT;

-- ---- inbox -------------------------------------------------------------------------------------------------------------

-- A request, byte for byte. The body goes when it is erased; its digest stays.
CREATE TABLE receipt (
    workspace_id BLOB NOT NULL,
    receipt_id BLOB NOT NULL,
    received_at INTEGER NOT NULL,
    method TEXT NOT NULL,
    query TEXT NOT NULL,
    headers TEXT NOT NULL,
    body BLOB,
    body_sha256 BLOB NOT NULL,
    PRIMARY KEY (workspace_id, receipt_id)
) STRICT;

-- An event: its identity for ever, and where it stands. `whole` is set when it ended without regard to its steps. The receipt
-- is written after its events, once it is known that one of them is new; a foreign key to it would have to be deferred, and then
-- makes every insert look for children through the whole table.
CREATE TABLE event (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    source_id BLOB NOT NULL,
    ref_hash BLOB NOT NULL,
    source_ref TEXT NOT NULL,
    receipt_id BLOB NOT NULL,
    pointer TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    created_at INTEGER,
    day TEXT NOT NULL,
    revision INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'done', 'dead', 'ignored', 'erased')),
    whole TEXT CHECK (whole IN ('dead', 'resolved', 'ignored', 'erased')),
    planned INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    ignored TEXT,
    unreadable TEXT,
    name TEXT,
    phone TEXT,
    email TEXT,
    is_test INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, event_id),
    UNIQUE (workspace_id, source_id, ref_hash)
) STRICT;

CREATE INDEX event_by_time ON event (workspace_id, received_at, event_id);
CREATE INDEX event_pending ON event (received_at, workspace_id) WHERE state = 'pending';

-- Received and states by source and day, counted apart from the rows (design 9.2).
CREATE TABLE tally (
    workspace_id BLOB NOT NULL,
    source_id BLOB NOT NULL,
    day TEXT NOT NULL,
    received INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    held INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    ignored INTEGER NOT NULL DEFAULT 0,
    erased INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, source_id, day)
) STRICT, WITHOUT ROWID;

-- ---- queue -------------------------------------------------------------------------------------------------------------

-- Unfinished work only, so that what is finished costs a claim nothing. `priority` is 0 for fresh events and 1 for such as
-- were tried or held before. A row is leased while `lease_until` is set. A claim writes no indexed column but that one, whose
-- index holds only what is being worked on: it makes "processing" a cheap count.
CREATE TABLE queue (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    target BLOB NOT NULL,
    priority INTEGER NOT NULL CHECK (priority IN (0, 1)),
    run_at INTEGER NOT NULL,
    lease_until INTEGER,
    token INTEGER NOT NULL,
    claims INTEGER NOT NULL DEFAULT 0,
    pass INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, event_id),
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

CREATE INDEX queue_due ON queue (target, priority, run_at, event_id);
CREATE INDEX queue_leased ON queue (workspace_id, lease_until) WHERE lease_until IS NOT NULL;

-- ---- record ------------------------------------------------------------------------------------------------------------

CREATE TABLE lead (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (workspace_id, event_id),
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

-- `resolved`: dead, and its dead letter was resolved without replay. `class`, `message` and `vendor_code` repeat what the
-- failure says, so that lists and filters need not read the document.
CREATE TABLE step (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    step_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('fetch', 'crm', 'task', 'check_task')),
    target BLOB NOT NULL,
    object TEXT NOT NULL,
    needs TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'done', 'skipped', 'dead')),
    resolved INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    maybe_applied INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER NOT NULL,
    pass INTEGER NOT NULL DEFAULT 0,
    delivered TEXT,
    failure TEXT,
    class TEXT,
    message TEXT,
    vendor_code TEXT,
    held_under TEXT,
    held_at INTEGER,
    skipped TEXT,
    PRIMARY KEY (workspace_id, event_id, step_id),
    UNIQUE (workspace_id, event_id, name),
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

CREATE INDEX step_held ON step (workspace_id, target, held_at, event_id) WHERE state = 'held';

-- A request fixed by its first intent: later attempts of the revision send exactly this (invariant 4).
CREATE TABLE request (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    step_id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    call TEXT NOT NULL,
    document TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (workspace_id, event_id, step_id, revision, call),
    FOREIGN KEY (workspace_id, event_id, step_id) REFERENCES step
) STRICT;

CREATE TABLE attempt (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    attempt_id BLOB NOT NULL,
    step_id BLOB NOT NULL,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    call TEXT,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    outcome TEXT,
    counts INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, event_id, attempt_id),
    UNIQUE (workspace_id, event_id, step_id, number),
    FOREIGN KEY (workspace_id, event_id, step_id) REFERENCES step
) STRICT;

-- What exists outside (ID-3). An event stands for its (source, source_ref).
CREATE TABLE link (
    workspace_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    destination_id BLOB NOT NULL,
    step TEXT NOT NULL,
    object TEXT NOT NULL,
    object_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, event_id, destination_id, step, object),
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

-- ---- targets, dead letters, replay, alerts --------------------------------------------------------------------------------

CREATE TABLE target (
    workspace_id BLOB NOT NULL,
    target BLOB NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, target)
) STRICT;

CREATE TABLE dead_letter (
    workspace_id BLOB NOT NULL,
    dead_letter_id BLOB NOT NULL,
    event_id BLOB NOT NULL,
    step_id BLOB,
    step TEXT,
    target BLOB,
    failure TEXT NOT NULL,
    class TEXT NOT NULL,
    message TEXT NOT NULL,
    vendor_code TEXT,
    cause TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    dead_at INTEGER NOT NULL,
    owner TEXT,
    resolution TEXT CHECK (resolution IN ('replayed', 'fixed_manually', 'discarded')),
    resolved_by TEXT,
    resolved_at INTEGER,
    note TEXT,
    previous_id BLOB,
    PRIMARY KEY (workspace_id, dead_letter_id),
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

CREATE INDEX dead_letter_by_time ON dead_letter (workspace_id, dead_at, dead_letter_id);
CREATE INDEX dead_letter_by_event ON dead_letter (workspace_id, event_id);
CREATE INDEX dead_letter_open ON dead_letter (workspace_id, class) WHERE resolution IS NULL;

CREATE TABLE replay (
    workspace_id BLOB NOT NULL,
    replay_id BLOB NOT NULL,
    filter TEXT NOT NULL,
    stages TEXT NOT NULL,
    stage INTEGER NOT NULL DEFAULT 0,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'stopped', 'failed')),
    started_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_by TEXT,
    ended_note TEXT,
    ended_at INTEGER,
    PRIMARY KEY (workspace_id, replay_id)
) STRICT;

-- The scheduler asks twice a second; replays that have ended cost it nothing.
CREATE INDEX replay_running ON replay (workspace_id, started_at) WHERE state = 'running';

-- What a replay covers: a step (dead or held), or an event that died as a whole. `stage` is set when it is sent.
CREATE TABLE replay_item (
    workspace_id BLOB NOT NULL,
    replay_id BLOB NOT NULL,
    position INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    step_id BLOB,
    dead_letter_id BLOB,
    target BLOB,
    stage INTEGER,
    PRIMARY KEY (workspace_id, replay_id, position),
    FOREIGN KEY (workspace_id, replay_id) REFERENCES replay,
    FOREIGN KEY (workspace_id, event_id) REFERENCES event
) STRICT;

CREATE INDEX replay_item_waiting ON replay_item (workspace_id, replay_id, position) WHERE stage IS NULL;
CREATE INDEX replay_item_by_event ON replay_item (workspace_id, event_id);

CREATE TABLE alert (
    workspace_id BLOB NOT NULL,
    alert_id BLOB NOT NULL,
    cause TEXT NOT NULL,
    class TEXT,
    target BLOB,
    message TEXT NOT NULL,
    hint TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL,
    closed_at INTEGER,
    PRIMARY KEY (workspace_id, alert_id)
) STRICT;

CREATE UNIQUE INDEX alert_open ON alert (workspace_id, cause) WHERE closed_at IS NULL;

-- ---- the CRM inside the product -------------------------------------------------------------------------------------------

CREATE TABLE sandbox_object (
    workspace_id BLOB NOT NULL,
    destination_id BLOB NOT NULL,
    object_id TEXT NOT NULL,
    object TEXT NOT NULL,
    external_id TEXT,
    idempotency_key TEXT,
    fields TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, destination_id, object_id)
) STRICT;

CREATE UNIQUE INDEX sandbox_object_key ON sandbox_object (workspace_id, destination_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX sandbox_object_by_external_id ON sandbox_object (workspace_id, destination_id, external_id);
