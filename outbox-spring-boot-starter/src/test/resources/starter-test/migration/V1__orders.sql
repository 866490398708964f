create table orders (id text primary key);
