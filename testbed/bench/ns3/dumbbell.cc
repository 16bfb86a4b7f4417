// SPDX-License-Identifier: GPL-2.0
//
// The testbed's dumbbell in ns-3: FLOWS greedy CUBIC flows over 10 Mbit/s, 100 ms round trip, a drop-tail queue of
// 86 packets, for SECONDS. Prints what they received together, Mbit/s of payload.
//
//     dumbbell FLOWS SECONDS
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>

using namespace ns3;

int main(int argc, char **argv)
{
	if (argc != 3) {
		std::cerr << "usage: dumbbell FLOWS SECONDS\n";
		return 2;
	}
	uint32_t flows = std::stoul(argv[1]);
	double seconds = std::stod(argv[2]);

	Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
	Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
	Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
	Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));

	NodeContainer nodes;
	nodes.Create(4); // sender, router, router, receiver
	InternetStackHelper().Install(nodes);

	PointToPointHelper access, bottleneck;
	access.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
	access.SetChannelAttribute("Delay", StringValue("1ms"));
	bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
	bottleneck.SetChannelAttribute("Delay", StringValue("48ms"));
	bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("86p"));

	Ipv4AddressHelper addresses("10.0.1.0", "255.255.255.0");
	Ipv4InterfaceContainer last;
	NetDeviceContainer links[] = { access.Install(nodes.Get(0), nodes.Get(1)),
				       bottleneck.Install(nodes.Get(1), nodes.Get(2)),
				       access.Install(nodes.Get(2), nodes.Get(3)) };
	for (auto &link : links) {
		last = addresses.Assign(link);
		addresses.NewNetwork();
	}
	// The device's queue is the bottleneck's only one, as in the testbed.
	TrafficControlHelper().Uninstall(links[1]);
	Ipv4GlobalRoutingHelper::PopulateRoutingTables();

	for (uint32_t i = 0; i < flows; i++) {
		uint16_t port = 5001 + i;
		BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(last.GetAddress(1), port));
		source.Install(nodes.Get(0)).Start(Seconds(i * 5.0 / flows));
		PacketSinkHelper("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port)).Install(nodes.Get(3));
	}
	Simulator::Stop(Seconds(seconds));
	Simulator::Run();

	uint64_t bytes = 0;
	for (uint32_t i = 0; i < nodes.Get(3)->GetNApplications(); i++)
		bytes += DynamicCast<PacketSink>(nodes.Get(3)->GetApplication(i))->GetTotalRx();
	std::cout << bytes * 8 / seconds / 1e6 << "\n";
	Simulator::Destroy();
	return 0;
}
