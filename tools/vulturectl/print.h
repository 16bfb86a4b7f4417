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

/* json_string() - in quotes; what is not printable ASCII becomes '?' */
void json_string(const char *text);

/* text_string() - the same without quotes, for a terminal: no control characters get through */
void text_string(const char *text, char *to, size_t room);

void json_options(const struct vulture_options *options);
void text_options(const struct vulture_options *options, const char *indent);

/* json_flow() - the members of a connection's object, without its braces */
void json_flow(const struct vulture_flow *flow);

/* text_flow() - all counters of a connection */
void text_flow(const struct vulture_flow *flow);

/* dscp_name() - "le" for 1; the number where it has no name here */
const char *dscp_name(uint8_t dscp);	/* args.c */

void json_rule(const struct vulture_rule *rule);
void text_rule(const struct vulture_rule *rule);

void list_header(const char *last);
void list_line(const struct vulture_flow *flow, double last);

/* json_begin() - the document's first members; more follow, then json_end() */
void json_begin(void);
void json_end(void);

/* screen_begin() - a page of a table; if it goes to a terminal, what screen_line() prints until
 * screen_end() is cut to it, and screen_end() says how many lines were left out
 */
void screen_begin(void);
void screen_end(void);

/* screen_line() - a line, without its end; outside a page it is printed as it is */
__attribute__((format(printf, 1, 2)))
void screen_line(const char *format, ...);

#endif /* VULTURECTL_PRINT_H */
