-- Makes a partitioned dead-letter table a plain one again, in one transaction. It copies every letter: they can be
-- looked at meanwhile, and none is written, changed or deleted.
do $unpartition$
declare
  letters   regclass := '"${outbox_dlq_schema}"."${outbox_dlq_table}"'::regclass;
  tree      oid[];
  types     oid[];
  obstacles text;
  last_id   bigint;
  is_called boolean;
  owner     text;
  told      text;
  storage   text;
  grants    text[];
  indexes   text[];
  names     text[];
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'Table % cannot be made a plain one in a transaction that is %, since letters that were written while it waited for its lock would not be copied, and be lost; use read committed',
      letters, current_setting('transaction_isolation') using errcode = 'object_not_in_prerequisite_state';
  end if;
  lock table "${outbox_dlq_schema}"."${outbox_dlq_table}" in exclusive mode;
  if letters <> '"${outbox_dlq_schema}"."${outbox_dlq_table}"'::regclass
    or (select c.relkind from pg_class c where c.oid = letters) <> 'p' then
    return; -- somebody else was faster
  end if;
  tree := array(select l.relid from pg_partition_tree(letters) l);
  types := array(
    select t.oid from pg_class c join pg_type r on r.oid = c.reltype join pg_type t on t.oid in (r.oid, r.typarray)
    where c.oid = any (tree));
  select string_agg(thing.name, ', ' order by thing.name) into obstacles
  from (
    select distinct 'trigger ' || t.tgname as name from pg_trigger t where t.tgrelid = any (tree) and not t.tgisinternal
    union all
    select 'rule ' || r.rulename from pg_rewrite r where r.ev_class = any (tree)
    union all
    -- also one of a partition: it would be found only once all letters are copied
    select distinct 'view ' || r.ev_class::regclass
    from pg_depend d join pg_rewrite r on r.oid = d.objid
    where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
      and d.refobjid = any (tree) and r.ev_class <> all (tree)
    union all
    select 'policy ' || p.polname from pg_policy p where p.polrelid = any (tree)
    union all
    select distinct 'policy ' || p.polname || ' of ' || p.polrelid::regclass
    from pg_depend d join pg_policy p on p.oid = d.objid
    where d.classid = 'pg_policy'::regclass and d.refclassid = 'pg_class'::regclass
      and d.refobjid = any (tree) and p.polrelid <> all (tree)
    union all
    select 'statistics ' || s.stxname from pg_statistic_ext s where s.stxrelid = any (tree)
    union all
    select distinct 'row security' from pg_class c where c.oid = any (tree) and (c.relrowsecurity or c.relforcerowsecurity)
    union all
    select 'foreign key ' || k.conname from pg_constraint k
    where k.contype = 'f' and (k.confrelid = any (tree) or k.conrelid = any (tree)) and k.conparentid = 0
    union all
    select case when i.indisunique then 'unique index ' else 'exclusion constraint ' end || i.indexrelid::regclass
    from pg_index i
    where i.indrelid = letters and (i.indisunique or i.indisexclusion) and not i.indisprimary
    union all
    -- of one partition only: what all have is made anew
    select 'index ' || i.indexrelid::regclass || ' of ' || i.indrelid::regclass from pg_index i
    where i.indrelid = any (tree) and i.indrelid <> letters
      and not exists (select from pg_inherits h where h.inhrelid = i.indexrelid)
    union all
    select 'constraint ' || k.conname || ' of ' || k.conrelid::regclass from pg_constraint k
    where k.contype = 'c' and k.conrelid = any (tree) and k.conrelid <> letters and k.coninhcount = 0
      and k.conname <> '${outbox_dlq_table}_until'
    union all
    select distinct 'function ' || d.objid::regprocedure
    from pg_depend d
    where d.classid = 'pg_proc'::regclass
      and (d.refclassid = 'pg_class'::regclass and d.refobjid = any (tree)
        or d.refclassid = 'pg_type'::regclass and d.refobjid = any (types))
    union all
    -- columns, domains and the like of the type of its rows
    select distinct i.type || ' ' || i.identity
    from pg_depend d cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) i
    where d.classid <> 'pg_proc'::regclass and d.deptype = 'n'
      and d.refclassid = 'pg_type'::regclass and d.refobjid = any (types)
    union all
    -- or its subscribers would be sent the copies
    select 'publication ' || p.pubname
    from pg_publication p
    where p.puballtables or exists (
      select from pg_get_publication_tables(p.pubname::text) t where t.relid = any (tree))) thing;
  if obstacles is not null then
    raise exception 'Table % cannot be made a plain one, since these would be lost, or publish a copy of each letter: %; drop them first, and create them anew after that',
      letters, obstacles using errcode = 'object_not_in_prerequisite_state';
  end if;

  execute 'select s.last_value, s.is_called from '
    || pg_get_serial_sequence('"${outbox_dlq_schema}"."${outbox_dlq_table}"', 'id') || ' s' into last_id, is_called;
  select pg_get_userbyid(c.relowner), regexp_replace(obj_description(c.oid, 'pg_class'), '(, )?partitioned by \w+', '')
    into owner, told from pg_class c where c.oid = letters;
  select array_agg(substr(x.definition, position(' USING ' in x.definition)) order by x.relname), array_agg(x.relname order by x.relname)
    into indexes, names
  from (
    select pg_get_indexdef(i.indexrelid) as definition, c.relname::text
    from pg_index i join pg_class c on c.oid = i.indexrelid
    where i.indrelid = letters and not i.indisprimary) x;
  select array_agg(format('grant %s on "${outbox_dlq_schema}"."${outbox_dlq_table}" to %s%s',
      acl.privilege_type || coalesce(' (' || quote_ident(acl.attname) || ')', ''),
      case acl.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(acl.grantee)) end,
      case when acl.is_grantable then ' with grant option' else '' end)) into grants
  from (
    select a.privilege_type, null::name as attname, a.grantee, a.is_grantable
    from pg_class c cross join lateral aclexplode(c.relacl) a where c.oid = letters and a.grantee <> c.relowner
    union all
    select a.privilege_type, t.attname, a.grantee, a.is_grantable
    from pg_attribute t cross join lateral aclexplode(t.attacl) a
    where t.attrelid = letters and not t.attisdropped) acl;

  select coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '')
      || coalesce(' tablespace ' || quote_ident(s.spcname), '')
    into storage
  from pg_partitioned_table p join pg_class c on c.oid = p.partdefid left join pg_tablespace s on s.oid = c.reltablespace
  where p.partrelid = letters;
  execute 'create table "${outbox_dlq_schema}"."${outbox_dlq_table}_plain" (
    like "${outbox_dlq_schema}"."${outbox_dlq_table}" including all excluding identity excluding indexes excluding statistics)'
    || coalesce(storage, '');
  insert into "${outbox_dlq_schema}"."${outbox_dlq_table}_plain" select * from "${outbox_dlq_schema}"."${outbox_dlq_table}";
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}_plain" add constraint "${outbox_dlq_table}_plain_pkey" primary key (id, failed_at);
  for n in 1 .. coalesce(cardinality(indexes), 0) loop
    execute format('create index %I on "${outbox_dlq_schema}"."${outbox_dlq_table}_plain"%s',
      '${outbox_dlq_table}_plain_' || n, indexes[n]);
  end loop;

  -- nobody writes anyway: whoever looks at letters now is waited for, so that it is not all done again
  perform set_config('lock_timeout', '60s', true);
  begin
    lock table "${outbox_dlq_schema}"."${outbox_dlq_table}" in access exclusive mode;
  exception when lock_not_available or deadlock_detected then
    -- no lock to be tried again: that would copy all letters once more, while nobody writes any
    raise exception 'Table % cannot be made a plain one, since somebody has looked at its letters for longer than 60 s, such as a pg_dump; end that first',
      letters using errcode = 'object_in_use';
  end;
  drop table "${outbox_dlq_schema}"."${outbox_dlq_table}";
  drop function if exists "${outbox_dlq_schema}"."${outbox_dlq_table}_until"(timestamptz);
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}_plain" rename to "${outbox_dlq_table}";
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}"
    rename constraint "${outbox_dlq_table}_plain_pkey" to "${outbox_dlq_table}_pkey";
  for n in 1 .. coalesce(cardinality(indexes), 0) loop
    execute format('alter index "${outbox_dlq_schema}".%I rename to %I', '${outbox_dlq_table}_plain_' || n, names[n]);
  end loop;
  alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" alter column id add generated by default as identity;
  perform setval(pg_get_serial_sequence('"${outbox_dlq_schema}"."${outbox_dlq_table}"', 'id'), last_id, is_called);
  for n in 1 .. coalesce(cardinality(grants), 0) loop
    execute grants[n];
  end loop;
  if owner <> current_user then
    execute format('alter table "${outbox_dlq_schema}"."${outbox_dlq_table}" owner to %I', owner);
  end if;
  execute format('comment on table "${outbox_dlq_schema}"."${outbox_dlq_table}" is %L', told);
end
$unpartition$;
