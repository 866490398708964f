create table purchase_order (
  id      text   primary key,
  cents   bigint not null check (cents > 0),
  state   text   not null,
  version int    not null
);
