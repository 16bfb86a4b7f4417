# SPDX-License-Identifier: GPL-2.0
#
# ns-2's side of the testbed: the words in which plan.py writes a run, and what is written down while it runs.
#
#	ns network.tcl PLAN
#
# PLAN is Tcl: a line a word below, made of an experiment's file. In the plan's folder a run leaves
#
#	recv	seconds, flow, octets of IP packets that arrived at the receiver (TCP: in order)
#	send	seconds, flow, cwnd and ssthresh in packets, smoothed round trip in us, packets sent again
#	queue	seconds, queue, packets and octets waiting, drops, octets and packets that left
#	web	seconds, flow, octets asked for, duration in us, page (-1: still under way)
#
# Everything that chance decides comes from the plan, but for the processing times of senders (Agent/TCP overhead_),
# whose stream is seeded by `begin`.

set ns [new Simulator]
set flows {}
set queues {}

proc begin {folder seed} {
	global recv send queue web
	ns-random $seed
	foreach name {recv send queue web} {
		set $name [open [file join $folder $name] w]
	}
}

# ------------------------------------------------------------------------------------- network

proc router {name} {
	global ns node
	set node($name) [$ns node]
}

# A host hangs at a router by a link of its own, whose queue never fills.
proc host {name at mbit delay_ms} {
	global ns node
	set node($name) [$ns node]
	$ns duplex-link $node($name) $node($at) ${mbit}Mb ${delay_ms}ms DropTail
	foreach {from to} [list $name $at $at $name] {
		$ns queue-limit $node($from) $node($to) 100000
	}
}

# One direction of a bottleneck; id 0: not sampled. kind: DropTail, RED, or Priority (see priority_link).
proc bottleneck {id from to mbit delay_ms kind settings} {
	global ns node queues monitor
	foreach {name value} $settings {
		if {$kind eq "RED"} { Queue/RED set $name $value }
	}
	if {$kind eq "Priority"} {
		priority_link $node($from) $node($to) $mbit $delay_ms $settings
	} else {
		$ns simplex-link $node($from) $node($to) ${mbit}Mb ${delay_ms}ms $kind
		set q [[$ns link $node($from) $node($to)] queue]
		foreach {name value} $settings {
			if {$name eq "limit_"} {
				$ns queue-limit $node($from) $node($to) $value
			} elseif {$kind ne "RED"} {
				$q set $name $value
			}
		}
	}
	if {$id} {
		lappend queues $id
		set monitor($id) [$ns monitor-queue $node($from) $node($to) ""]
	}
}

# Strict priority over two queues of their own: packets with prio_ 10 first, prio_ 20 when there are none.
proc priority_link {from to mbit delay_ms settings} {
	global ns
	array set given $settings
	$ns simplex-link $from $to ${mbit}Mb ${delay_ms}ms dsRED/core
	$ns queue-limit $from $to $given(limit_)
	set q [[$ns link $from $to] queue]
	$q meanPktSize $given(packet_)
	$q set numQueues_ 2
	$q setNumPrec 1
	$q setSchedularMode PRI
	$q addPHBEntry 10 0 0
	$q addPHBEntry 0 0 0
	$q addPHBEntry 20 1 0
	foreach band {0 1} {
		$q setMREDMode DROP $band
		$q configQ $band 0 $given(limit_) $given(limit_) 1.0
	}
}

# --------------------------------------------------------------------------------------- flows

proc sender_of {kind settings} {
	set agent [new Agent/TCP/$kind]
	foreach {name value} $settings {
		$agent set $name $value
	}
	return $agent
}

proc connect {source sink from to id} {
	global ns node
	$source set fid_ $id
	$sink set fid_ $id
	$ns attach-agent $node($from) $source
	$ns attach-agent $node($to) $sink
	$ns connect $source $sink
}

# A greedy transfer.
proc greedy {id from to kind settings sink_kind prio start_s stop_s} {
	global ns flows agent sink type
	set agent($id) [sender_of $kind $settings]
	set sink($id) [new Agent/$sink_kind]
	$agent($id) set prio_ $prio
	connect $agent($id) $sink($id) $from $to $id
	set ftp [new Application/FTP]
	$ftp attach-agent $agent($id)
	$ns at $start_s "$ftp start"
	if {$stop_s >= 0} { $ns at $stop_s "$ftp stop" }
	set type($id) tcp
	lappend flows $id
}

proc datagrams {id from to bytes prio} {
	global flows agent sink type
	set agent($id) [new Agent/UDP]
	$agent($id) set packetSize_ 65000
	$agent($id) set prio_ $prio
	set sink($id) [new Agent/LossMonitor]
	connect $agent($id) $sink($id) $from $to $id
	set type($id) udp
	lappend flows $id
}

# Constant rate while on: on_s of every period_s (period_s 0: all the time).
proc square {id from to bytes mbit period_s on_s prio start_s stop_s} {
	global ns agent
	datagrams $id $from $to $bytes $prio
	set cbr [new Application/Traffic/CBR]
	$cbr set packetSize_ $bytes
	$cbr set rate_ ${mbit}Mb
	$cbr attach-agent $agent($id)
	if {$period_s == 0} {
		$ns at $start_s "$cbr start"
		$ns at $stop_s "$cbr stop"
	} else {
		pulse $cbr $start_s $stop_s $period_s $on_s
	}
}

proc pulse {cbr at_s stop_s period_s on_s} {
	global ns
	if {$at_s >= $stop_s} { return }
	$ns at $at_s "$cbr start"
	$ns at [expr {min($at_s + $on_s, $stop_s)}] "$cbr stop"
	set next [expr {$at_s + $period_s}]
	$ns at $at_s "pulse_later $cbr $next $stop_s $period_s $on_s"
}

proc pulse_later {cbr next stop_s period_s on_s} {
	pulse $cbr $next $stop_s $period_s $on_s
}

# Packets of a file (ns-2's own form: gap in us and octets, 32 bits each).
proc replay {id from to file prio start_s stop_s} {
	global ns agent
	datagrams $id $from $to 0 $prio
	set trace [new Tracefile]
	$trace filename $file
	set source [new Application/Traffic/Trace]
	$source attach-tracefile $trace
	$source attach-agent $agent($id)
	$ns at $start_s "$source start"
	$ns at $stop_s "$source stop"
}

# ----------------------------------------------------------------------------------------- web
#
# Objects are transfers of their own from server to client. A connection that ended is used for the next object:
# ns-2 never frees an agent.

proc web {id server client kind settings payload} {
	global web_of idle
	set web_of($id) [list $server $client $kind $settings $payload]
	set idle($id) {}
}

proc object {id page bytes} {
	global ns web_of idle pending
	foreach {server client kind settings payload} $web_of($id) {}
	if {[llength $idle($id)]} {
		set pair [lindex $idle($id) end]
		set idle($id) [lrange $idle($id) 0 end-1]
		foreach {tcp sink} $pair {}
		$tcp reset
		$sink reset
	} else {
		set tcp [sender_of $kind $settings]
		set sink [new Agent/TCPSink]
		connect $tcp $sink $server $client $id
	}
	set packets [expr {int(ceil(double($bytes) / $payload))}]
	set pending($tcp) [list $id $page $bytes [$ns now] $sink]
	$tcp proc done {} "fetched $tcp"
	$tcp advanceby $packets
}

proc fetched {tcp} {
	global ns web pending idle page_left
	if {![info exists pending($tcp)]} { return }
	foreach {id page bytes at_s sink} $pending($tcp) {}
	unset pending($tcp)
	puts $web [format "%.6f %d %d %d %d" $at_s $id $bytes [expr {round(([$ns now] - $at_s) * 1e6)}] $page]
	lappend idle($id) [list $tcp $sink]
	if {[info exists page_left($page)]} {
		incr page_left($page) -1
		if {$page_left($page) == 0} { page_done $page }
	}
}

# A user: pages of so many objects, asked for object_s apart; when all are there, a pause of page_s (means of
# exponential times). Sizes: Pareto II of this shape and scale, cut to [low, high].
proc session {id number seed objects object_s page_s shape scale low high start_s stop_s} {
	global ns session_of
	set rng [new RNG]
	$rng seed $seed
	set session_of($number) [list $id $rng $objects $object_s $page_s $shape $scale $low $high $stop_s]
	$ns at $start_s "page $number"
}

proc page {number} {
	global ns session_of page_left
	foreach {id rng objects object_s page_s shape scale low high stop_s} $session_of($number) {}
	if {[$ns now] >= $stop_s} { return }
	set page_left($number) $objects
	set at_s [$ns now]
	for {set i 0} {$i < $objects} {incr i} {
		set bytes [expr {$scale * (pow(1 - [$rng uniform 0 1], -1.0 / $shape) - 1)}]
		set bytes [expr {round(max($low, min($high, $bytes)))}]
		$ns at $at_s "object $id $number $bytes"
		set at_s [expr {$at_s + [$rng exponential] * $object_s}]
	}
}

proc page_done {number} {
	global ns session_of
	foreach {id rng objects object_s page_s} $session_of($number) {}
	$ns at [expr {[$ns now] + [$rng exponential] * $page_s}] "page $number"
}

# --------------------------------------------------------------------------------- written down

proc sample {step_s} {
	global ns flows queues agent sink type monitor recv send queue
	set t [format %.6f [$ns now]]
	foreach id $flows {
		puts $recv "$t $id [$sink($id) set bytes_]"
		if {$type($id) eq "tcp"} {
			set a $agent($id)
			set srtt_us [expr {round(([$a set srtt_] >> 3) * [$a set tcpTick_] * 1e6)}]
			puts $send "$t $id [$a set cwnd_] [$a set ssthresh_] $srtt_us [$a set nrexmitpack_]"
		}
	}
	foreach id $queues {
		set m $monitor($id)
		puts $queue "$t $id [$m set pkts_] [$m set size_] [$m set pdrops_] [$m set bdepartures_] [$m set pdepartures_]"
	}
	$ns at [expr {[$ns now] + $step_s}] "sample $step_s"
}

proc finish {} {
	global ns pending web recv send queue
	foreach tcp [array names pending] {
		foreach {id page bytes at_s sink} $pending($tcp) {}
		puts $web [format "%.6f %d %d -1 %d" $at_s $id $bytes $page]
	}
	foreach name {recv send queue web} { close [set $name] }
	exit 0
}

source [lindex $argv 0]
$ns run
