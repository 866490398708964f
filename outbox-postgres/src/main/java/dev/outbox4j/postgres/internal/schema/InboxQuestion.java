package dev.outbox4j.postgres.internal.schema;

import javax.sql.DataSource;

/**
 * An inbox that is to be compared, too.
 *
 * @param dataSource connections to its database
 * @param table its table
 */
public record InboxQuestion(DataSource dataSource, TableName table) {}
