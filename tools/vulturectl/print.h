/* SPDX-License-Identifier: GPL-2.0 */
/* Connections and rules as text and as JSON. vulturectl.schema.json describes the JSON. */
#ifndef VULTURECTL_PRINT_H
#define VULTURECTL_PRINT_H

#include <netinet/in.h>
#include <stdbool.h>

#include "../libvulture/internal.h"

/* room for an address with its port, in text */
#define ADDRESS_CHARS	(INET6_ADDRSTRLEN + 8)

/* endpoint() - "10.0.0.1:80" or "[fd00::1]:80", into @text. Return: @text. */
const char *endpoint(const struct sockaddr *sa, char text[ADDRESS_CHARS]);

/* json_string() - print a quoted string; characters other than printable ASCII become '?' */
void json_string(const char *text);

/* text_string() - copy a string for a terminal, with the same replacement, without quotes */
void text_string(const char *text, char *to, size_t room);

void json_options(const struct vulture_options *options);
void text_options(const struct vulture_options *options, const char *indent);

/* json_flow() - print the members of a connection's JSON object, without the braces */
void json_flow(const struct vulture_flow *flow);

/* text_flow() - print all counters of a connection */
void text_flow(const struct vulture_flow *flow);

/* dscp_name() - name of a DSCP, "le" for 1; the number as text if it has no name */
const char *dscp_name(uint8_t dscp);	/* args.c */

void json_rule(const struct vulture_rule *rule);
void text_rule(const struct vulture_rule *rule);

void list_header(const char *last);
void list_line(const struct vulture_flow *flow, double last);

/* json_begin() - begin the document with the member "schema"; the others and json_end() follow */
void json_begin(void);
void json_end(void);

/* screen_begin() - begin a page of a table. On a terminal, the lines of screen_line() until
 * screen_end() are cut to its size, and screen_end() prints how many lines were left out.
 */
void screen_begin(void);
void screen_end(void);

/* screen_line() - print a line and a newline; before the first page no limits apply */
__attribute__((format(printf, 1, 2)))
void screen_line(const char *format, ...);

#endif /* VULTURECTL_PRINT_H */
