-- What \d+ shows, and the reference in docs/ is made of.

COMMENT ON COLUMN mdistinct.publication.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.publication.release IS 'number of the release, counted from 1 without gaps';
COMMENT ON COLUMN mdistinct.publication.records IS 'real records published';
COMMENT ON COLUMN mdistinct.publication.groups IS 'groups published';
COMMENT ON COLUMN mdistinct.publication.counterfeits IS 'counterfeit rows published';
COMMENT ON COLUMN mdistinct.publication.withheld IS 'records of the snapshot left out to keep a bound';
COMMENT ON COLUMN mdistinct.publication.ncp IS 'information loss: mean width of ranges and sets relative to those of the whole column, 0 to 1';
COMMENT ON COLUMN mdistinct.publication.max_risk IS 'the largest risk of any version of any record, after this release';
COMMENT ON COLUMN mdistinct.publication.seconds IS 'how long it took';

COMMENT ON COLUMN mdistinct.datasets.dataset IS 'name of the dataset';
COMMENT ON COLUMN mdistinct.datasets.source_schema IS 'schema of the source';
COMMENT ON COLUMN mdistinct.datasets.source_table IS 'table or view that is published';
COMMENT ON COLUMN mdistinct.datasets.id_column IS 'the column that tells records apart';
COMMENT ON COLUMN mdistinct.datasets.id_type IS 'its type';
COMMENT ON COLUMN mdistinct.datasets.qi_columns IS 'the quasi-identifiers';
COMMENT ON COLUMN mdistinct.datasets.qi_types IS 'their types';
COMMENT ON COLUMN mdistinct.datasets.sensitive_column IS 'the column that is protected';
COMMENT ON COLUMN mdistinct.datasets.sensitive_type IS 'its type';
COMMENT ON COLUMN mdistinct.datasets.m IS 'how many different values each group has at least';
COMMENT ON COLUMN mdistinct.datasets.variant IS 'the variant of the principle';
COMMENT ON COLUMN mdistinct.datasets.max_risk IS 'bound on the risk; NULL: measured, not bounded';
COMMENT ON COLUMN mdistinct.datasets.registered_by IS 'who registered it';
COMMENT ON COLUMN mdistinct.datasets.registered_at IS 'when';
COMMENT ON COLUMN mdistinct.datasets.last_release IS 'number of the latest release; 0 before the first';

COMMENT ON COLUMN mdistinct.updates.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.updates.old_value IS 'a sensitive value';
COMMENT ON COLUMN mdistinct.updates.new_value IS 'what it may become by the next release';
COMMENT ON COLUMN mdistinct.updates.probability IS 'how likely that is';

COMMENT ON COLUMN mdistinct.releases.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.releases.release IS 'number of the release';
COMMENT ON COLUMN mdistinct.releases.published_at IS 'when it was published';
COMMENT ON COLUMN mdistinct.releases.m IS 'm as it was then';
COMMENT ON COLUMN mdistinct.releases.variant IS 'the variant of the principle';
COMMENT ON COLUMN mdistinct.releases.records IS 'real records published';
COMMENT ON COLUMN mdistinct.releases.groups IS 'groups published';
COMMENT ON COLUMN mdistinct.releases.counterfeits IS 'counterfeit rows published';
COMMENT ON COLUMN mdistinct.releases.withheld IS 'records left out to keep a bound';
COMMENT ON COLUMN mdistinct.releases.ncp IS 'information loss, 0 to 1';
COMMENT ON COLUMN mdistinct.releases.max_risk IS 'the largest risk of any version of any record, after this release; NULL: not measured';
COMMENT ON COLUMN mdistinct.releases.seconds IS 'how long it took';

COMMENT ON COLUMN mdistinct_published.releases.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct_published.releases.release IS 'number of the release';
COMMENT ON COLUMN mdistinct_published.releases.published_at IS 'when it was published';
COMMENT ON COLUMN mdistinct_published.releases.m IS 'm as it was then';
COMMENT ON COLUMN mdistinct_published.releases.variant IS 'the variant of the principle';
COMMENT ON COLUMN mdistinct_published.releases.rows IS 'rows published, counterfeits included';
COMMENT ON COLUMN mdistinct_published.releases.groups IS 'groups published';
COMMENT ON COLUMN mdistinct_published.releases.counterfeits IS 'how many of the rows are counterfeits';

COMMENT ON COLUMN mdistinct.schedules.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.schedules.cron IS 'when it is to be published';
COMMENT ON COLUMN mdistinct.schedules.scheduled_by IS 'who scheduled it';
COMMENT ON COLUMN mdistinct.schedules.scheduled_at IS 'when that was';

COMMENT ON COLUMN mdistinct.runs.run IS 'number of the run';
COMMENT ON COLUMN mdistinct.runs.dataset IS 'the dataset';
COMMENT ON COLUMN mdistinct.runs.run_by IS 'the role that ran it';
COMMENT ON COLUMN mdistinct.runs.started_at IS 'when it began';
COMMENT ON COLUMN mdistinct.runs.ended_at IS 'when it ended; NULL while it has not';
COMMENT ON COLUMN mdistinct.runs.status IS 'running, published, skipped, failed or interrupted';
COMMENT ON COLUMN mdistinct.runs.release IS 'the release that came out';
COMMENT ON COLUMN mdistinct.runs.sqlstate IS 'SQLSTATE where nothing was published';
COMMENT ON COLUMN mdistinct.runs.message IS 'why';
COMMENT ON COLUMN mdistinct.runs.hint IS 'what to do about it';

COMMENT ON COLUMN mdistinct.audit_trail.call IS 'identifier of the call';
COMMENT ON COLUMN mdistinct.audit_trail.began_at IS 'when it began';
COMMENT ON COLUMN mdistinct.audit_trail.ended_at IS 'when it ended';
COMMENT ON COLUMN mdistinct.audit_trail.login IS 'who had logged in';
COMMENT ON COLUMN mdistinct.audit_trail.role IS 'the role in effect';
COMMENT ON COLUMN mdistinct.audit_trail.client_address IS 'where the client was; NULL for a socket';
COMMENT ON COLUMN mdistinct.audit_trail.action IS 'what was called';
COMMENT ON COLUMN mdistinct.audit_trail.dataset IS 'the dataset that it was about';
COMMENT ON COLUMN mdistinct.audit_trail.options IS 'the other arguments';
COMMENT ON COLUMN mdistinct.audit_trail.outcome IS 'succeeded, failed, rolled back or unfinished';
COMMENT ON COLUMN mdistinct.audit_trail.sqlstate IS 'SQLSTATE of a failure';
COMMENT ON COLUMN mdistinct.audit_trail.message IS 'its message';
COMMENT ON COLUMN mdistinct.audit_trail.result IS 'figures of what was done';
COMMENT ON COLUMN mdistinct.audit_trail.transaction IS 'the transaction that wrote the row';

COMMENT ON COLUMN mdistinct.progress.pid IS 'process of the session';
COMMENT ON COLUMN mdistinct.progress.phase IS 'what it is doing';
COMMENT ON COLUMN mdistinct.progress.share IS 'how much of that is done, 0 to 1';
