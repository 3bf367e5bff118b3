-- The shipped audit of a fleet in PostgreSQL 13 or later. load.py beside this makes it and fills it; it may be run again.

create schema if not exists hookyard;

-- A line is there once: `loaded` says how far each file of the sink is in here.
create table if not exists hookyard.lines (
    id bigint generated always as identity primary key,
    node text not null,
    -- By the clock of the edge, and by that of the sink.
    at timestamptz not null,
    received timestamptz not null,
    kind text not null check (kind in ('outcome', 'denied', 'state', 'unreadable')),
    line jsonb not null
);
create index if not exists lines_node on hookyard.lines (node, received);
create index if not exists lines_state on hookyard.lines (node, id) where kind = 'state';
create index if not exists lines_at on hookyard.lines (at);
create index if not exists lines_decision on hookyard.lines ((line ->> 'decision_id')) where kind = 'outcome';

create table if not exists hookyard.loaded (
    file text primary key,
    ended bigint not null
);

-- jsonb has no zero characters and no lone surrogates, and one line must not keep out the others.
create or replace function hookyard.read(line text) returns jsonb language plpgsql immutable as $$
begin
    return replace(line, '\u0000', '\ufffd')::jsonb;
exception when others then
    return jsonb_build_object('unreadable', line);
end $$;

-- What an edge writes may be anything: nonsense of one must not fail the views of all.
create or replace function hookyard.number(value jsonb) returns bigint language sql immutable as $$
    select case when value::text ~ '^[0-9]{1,18}$' then value::text::bigint end
$$;
create or replace function hookyard.list(value jsonb) returns jsonb language sql immutable as $$
    select case jsonb_typeof(value) when 'array' then value else '[]' end
$$;

create or replace view hookyard.verdicts as
select node, at, received, line ->> 'decision_id' as decision_id, line ->> 'workspace_id' as workspace, line ->> 'event' as event,
    line ->> 'tool' as tool, line ->> 'verdict' as verdict, line ->> 'by' as hook, line ->> 'reason' as reason, line
from hookyard.lines
where kind = 'outcome';

-- Hooks that failed, and whether their events went on all the same.
create or replace view hookyard.failures as
select node, at, result ->> 'hook' as hook, result ->> 'ended' as ended, result ->> 'policy' as policy, result ->> 'error' as error
from hookyard.lines, jsonb_array_elements(hookyard.list(line -> 'hooks')) as result
where kind = 'outcome' and result ->> 'ended' <> 'completed';

-- Where each edge stands: its last state, and what came of it in the last day. The order is that of the sink: clocks of edges may be wrong.
create or replace view hookyard.edges as
select edge.node, seen.received as seen, state.at as state_at,
    state.line #>> '{state,bundle,name}' as bundle, hookyard.number(state.line #> '{state,bundle,version}') as version,
    state.line #>> '{state,bundle,standing}' as standing, state.line #>> '{state,bundle,error}' as bundle_error,
    hookyard.number(state.line #> '{state,hooks}') as hooks,
    jsonb_array_length(hookyard.list(state.line #> '{state,broken}'))
        + jsonb_array_length(hookyard.list(state.line #> '{state,not_loaded}'))
        + jsonb_array_length(hookyard.list(state.line #> '{state,required_missing}')) as broken,
    hookyard.number(state.line #> '{state,failed_open}') as failed_open,
    hookyard.number(state.line #> '{state,audit,shipping,waiting}') as waiting,
    day.verdicts, day.blocked,
    hookyard.number(state.line #> '{state,audit,shipping,dropped}') as dropped,
    hookyard.number(state.line #> '{state,bundle,copy_changes}') as copy_changes
from (select distinct split_part(file, '/', 1) as node from hookyard.loaded) as edge
left join lateral (
    select lines.received from hookyard.lines where lines.node = edge.node order by lines.received desc limit 1
) as seen on true
left join lateral (
    select lines.at, lines.line from hookyard.lines
    where lines.node = edge.node and lines.kind = 'state' order by lines.id desc limit 1
) as state on true
cross join lateral (
    select count(*) as verdicts, count(*) filter (where line ->> 'verdict' in ('block', 'halt')) as blocked
    from hookyard.lines
    where lines.node = edge.node and lines.kind = 'outcome' and lines.received > now() - interval '1 day'
) as day;
