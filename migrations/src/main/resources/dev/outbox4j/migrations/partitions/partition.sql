-- Makes the dead-letter table one that is partitioned by failed_at, in one transaction. What it holds is the first
-- partition: up to the end of the coming ${outbox_dlq_unit}, so that no letter of today is in another one.
do $partition$
declare
  letters   regclass := '"${outbox_dlq_schema}"."${outbox_dlq_table}"'::regclass;
  types     oid[];
  obstacles text;
  ids       text;
  last_id   bigint;
  is_called boolean;
  owner     text;
  told      text;
  indexes   text[];
  storage   text;
  one       record;
begin
  lock table only "${outbox_dlq_schema}"."${outbox_dlq_table}" in access exclusive mode;
  if letters <> '"${outbox_dlq_schema}"."${outbox_dlq_table}"'::regclass
    or (select c.relkind from pg_class c where c.oid = letters) = 'p' then
    return; -- somebody else was faster
  end if;
  types := array(
    select t.oid from pg_class c join pg_type r on r.oid = c.reltype join pg_type t on t.oid in (r.oid, r.typarray)
    where c.oid = letters);
  -- what would stay with the first partition, and so be true of old letters only
  select string_agg(thing.name, ', ' order by thing.name) into obstacles
  from (
    select 'trigger ' || t.tgname as name from pg_trigger t where t.tgrelid = letters and not t.tgisinternal
    union all
    select 'rule ' || r.rulename from pg_rewrite r where r.ev_class = letters
    union all
    select distinct 'view ' || r.ev_class::regclass
    from pg_depend d join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
      and d.refobjid = letters and r.ev_class <> letters
    union all
    select distinct 'function ' || d.objid::regprocedure
    from pg_depend d
    where d.classid = 'pg_proc'::regclass
      and (d.refclassid = 'pg_class'::regclass and d.refobjid = letters
        or d.refclassid = 'pg_type'::regclass and d.refobjid = any (types))
    union all
    -- columns, domains and the like of the type of its rows
    select distinct i.type || ' ' || i.identity
    from pg_depend d cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) i
    where d.classid <> 'pg_proc'::regclass and d.deptype = 'n'
      and d.refclassid = 'pg_type'::regclass and d.refobjid = any (types)
    union all
    select 'policy ' || p.polname from pg_policy p where p.polrelid = letters
    union all
    select distinct 'policy ' || p.polname || ' of ' || p.polrelid::regclass
    from pg_depend d join pg_policy p on p.oid = d.objid
    where d.classid = 'pg_policy'::regclass and d.refclassid = 'pg_class'::regclass
      and d.refobjid = letters and p.polrelid <> letters
    union all
    select 'statistics ' || s.stxname from pg_statistic_ext s where s.stxrelid = letters
    union all
    select 'row security' from pg_class c where c.oid = letters and (c.relrowsecurity or c.relforcerowsecurity)
    union all
    select 'foreign key ' || k.conname from pg_constraint k
    where k.contype = 'f' and letters in (k.confrelid, k.conrelid)
    union all
    select 'publication ' || p.pubname
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where r.prrelid = letters
    union all
    -- its subscribers would be sent letters of tables that they do not have
    select 'publication ' || p.pubname || ' without publish_via_partition_root'
    from pg_publication p
    where not p.pubviaroot
      and not exists (select from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = letters)
      and (p.puballtables
        or exists (select from pg_get_publication_tables(p.pubname::text) t where t.relid = letters))
    union all
    select 'inheritance' from pg_inherits i where letters in (i.inhparent, i.inhrelid)
    union all
    select case when i.indisunique then 'unique index ' else 'exclusion constraint ' end || i.indexrelid::regclass
    from pg_index i
    where i.indrelid = letters and (i.indisunique or i.indisexclusion) and not i.indisprimary
    union all
    select 'column id without identity' from pg_attribute a
    where a.attrelid = letters and a.attname = 'id' and a.attidentity = '') thing;
  if obstacles is not null then
    raise exception 'Table % cannot be partitioned, since these would stay with its old letters: %; drop them first, and create them anew after that',
      letters, obstacles using errcode = 'object_not_in_prerequisite_state';
  end if;

  ids := pg_get_serial_sequence('"${outbox_dlq_schema}"."${outbox_dlq_table}"', 'id');
  execute 'select s.last_value, s.is_called from ' || ids || ' s' into last_id, is_called;
  select pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class') into owner, told from pg_class c where c.oid = letters;
  select array_agg(pg_get_indexdef(i.indexrelid)) into indexes
  from pg_index i where i.indrelid = letters and not i.indisprimary and i.indisvalid;
  select coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '')
      || coalesce(' tablespace ' || quote_ident(s.spcname), '')
    into storage from pg_class c left join pg_tablespace s on s.oid = c.reltablespace where c.oid = letters;

  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" alter column id drop identity;
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" rename to "${outbox_dlq_table}_first";
  for one in
    select n.nspname, c.relname,
      case when starts_with(c.relname, '${outbox_dlq_table}_')
        then '${outbox_dlq_table}_first' || substr(c.relname, length('${outbox_dlq_table}') + 1)
        else c.relname || '_first' end as name
    from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
    where i.indrelid = letters
  loop
    execute format('alter index %I.%I rename to %I', one.nspname, one.relname, one.name);
  end loop;

  create table "${outbox_dlq_schema}"."${outbox_dlq_table}" (
    like "${outbox_dlq_schema}"."${outbox_dlq_table}_first" including all excluding identity excluding indexes excluding statistics,
    constraint "${outbox_dlq_table}_pkey" primary key (id, failed_at)
  ) partition by range (failed_at);
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" drop constraint if exists "${outbox_dlq_table}_until";
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" alter column id add generated by default as identity;
  perform setval(pg_get_serial_sequence('"${outbox_dlq_schema}"."${outbox_dlq_table}"', 'id'), last_id, is_called);
  for one in select unnest(indexes) as definition loop
    execute one.definition;
  end loop;
  for one in
    select acl.privilege_type || coalesce(' (' || quote_ident(acl.attname) || ')', '') as privilege, acl.grantee,
      acl.is_grantable
    from (
      select a.privilege_type, null::name as attname, a.grantee, a.is_grantable
      from pg_class c cross join lateral aclexplode(c.relacl) a where c.oid = letters and a.grantee <> c.relowner
      union all
      select a.privilege_type, t.attname, a.grantee, a.is_grantable
      from pg_attribute t cross join lateral aclexplode(t.attacl) a
      where t.attrelid = letters and not t.attisdropped) acl
  loop
    execute format('grant %s on "${outbox_dlq_schema}"."${outbox_dlq_table}" to %s%s', one.privilege,
      case one.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(one.grantee)) end,
      case when one.is_grantable then ' with grant option' else '' end);
  end loop;
  if owner <> current_user then
    execute format('alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" owner to %I', owner);
  end if;
  execute format('comment on table "${outbox_dlq_schema}"."${outbox_dlq_table}" is %L',
    coalesce(told || ', ', '') || 'partitioned by ${outbox_dlq_unit}');
  comment on table "${outbox_dlq_schema}"."${outbox_dlq_table}_first" is null;

  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" attach partition "${outbox_dlq_schema}"."${outbox_dlq_table}_first"
    for values from (minvalue) to (${outbox_dlq_until});
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}_first" drop constraint if exists "${outbox_dlq_table}_until";
  drop function if exists "${outbox_dlq_schema}"."${outbox_dlq_table}_until"(timestamptz);
  execute 'create table "${outbox_dlq_schema}"."${outbox_dlq_table}_default" (
    like "${outbox_dlq_schema}"."${outbox_dlq_table}" including all excluding identity excluding statistics)' || storage;
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" attach partition "${outbox_dlq_schema}"."${outbox_dlq_table}_default" default;
  if owner <> current_user then
    execute format('alter table "${outbox_dlq_schema}"."${outbox_dlq_table}_default" owner to %I', owner);
  end if;
end
$partition$;
