// SPDX-License-Identifier: GPL-2.0
//
// ns-3's side of the testbed: runs a plan that plan.py has written, and writes down what happens.
//
//	network PLAN
//
// PLAN has a line for each part of the run: a word of the table `words` in main(), and its values. In the plan's
// folder a run leaves
//
//	recv	seconds, flow, bytes of payload that arrived at the receiver (TCP: in order)
//	send	seconds, flow, cwnd and ssthresh in packets, smoothed round trip in us, packets sent again
//	queue	seconds, queue, packets and octets waiting, drops, octets and packets that left
//	web	nothing: ns-3 has no web traffic here
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// octets that a point-to-point device adds to each packet
const double PPP_OCTETS = 2;
const uint16_t FIRST_PORT = 5000;
const uint32_t CHUNK_OCTETS = 65536;

struct Plan {
	std::string folder;
	double rate_factor = 1;
	std::map<std::string, Ptr<Node>> nodes;
	std::map<std::string, Ipv4Address> addresses;
	Ipv4AddressHelper networks{"10.0.0.0", "255.255.255.0"};
};

struct Receiver {
	int flow;
	uint64_t payload_octets = 0;
};

struct Sender {
	int flow;
	Ptr<TcpSocketBase> socket;
	double mss_octets = 1;
	uint32_t cwnd_octets = 0;
	uint32_t ssthresh_octets = 0;
	double srtt_us = 0;
	uint64_t again = 0;
	SequenceNumber32 highest{0};
};

struct Backlog {
	int id;
	Ptr<Queue<Packet>> queue;
	uint64_t out_octets = 0;
	uint64_t out_packets = 0;
};

Plan plan;
std::map<int, Receiver *> receivers;
std::map<int, Sender *> senders;
std::vector<Backlog *> backlogs;
std::ofstream recv_file, send_file, queue_file;

[[noreturn]] void refuse(const std::string &text)
{
	std::cerr << text << "\n";
	std::exit(2);
}

template <typename T> T take(std::istringstream &words)
{
	T value;
	if (!(words >> value))
		refuse("a word is missing or is no number");
	return value;
}

Ptr<Node> node(const std::string &name)
{
	if (!plan.nodes.count(name))
		refuse("no node " + name);
	return plan.nodes[name];
}

// ------------------------------------------------------------------------------------- network

void make_node(std::istringstream &words)
{
	std::string name = take<std::string>(words);

	plan.nodes[name] = CreateObject<Node>();
	InternetStackHelper().Install(plan.nodes[name]);
}

// One direction's device: its rate, and the packets that its queue holds beside the one on the wire.
void set_device(Ptr<NetDevice> device, double mbit, uint32_t packets)
{
	Ptr<PointToPointNetDevice> wire = DynamicCast<PointToPointNetDevice>(device);
	std::ostringstream depth;

	depth << packets << "p";
	wire->SetDataRate(DataRate(static_cast<uint64_t>(mbit * plan.rate_factor * 1e6)));
	Ptr<DropTailQueue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
	queue->SetAttribute("MaxSize", StringValue(depth.str()));
	wire->SetQueue(queue);
}

void watch(int id, Ptr<NetDevice> device)
{
	Backlog *backlog = new Backlog{id, DynamicCast<PointToPointNetDevice>(device)->GetQueue()};

	backlog->queue->TraceConnectWithoutContext(
		"Dequeue", Callback<void, Ptr<const Packet>>([backlog](Ptr<const Packet> packet) {
			backlog->out_octets += packet->GetSize();
			backlog->out_packets++;
		}));
	backlogs.push_back(backlog);
}

// link FROM TO MBIT BACK_MBIT DELAY_MS PACKETS BACK_PACKETS WATCHED
void make_link(std::istringstream &words)
{
	std::string from = take<std::string>(words), to = take<std::string>(words);
	double mbit = take<double>(words), back_mbit = take<double>(words), delay_ms = take<double>(words);
	uint32_t packets = take<uint32_t>(words), back_packets = take<uint32_t>(words);
	bool watched = take<int>(words);
	PointToPointHelper helper;

	helper.SetChannelAttribute("Delay", TimeValue(MicroSeconds(delay_ms * 1000)));
	NetDeviceContainer devices = helper.Install(node(from), node(to));
	set_device(devices.Get(0), mbit, packets);
	set_device(devices.Get(1), back_mbit, back_packets);
	Ipv4InterfaceContainer ends = plan.networks.Assign(devices);
	plan.networks.NewNetwork();
	// a device's queue is its only one
	TrafficControlHelper().Uninstall(devices);
	if (watched) {
		watch(1, devices.Get(0));
		watch(2, devices.Get(1));
	} else {
		plan.addresses[from] = ends.GetAddress(0);
	}
}

// --------------------------------------------------------------------------------------- flows

void receive(Receiver *receiver, Ptr<Socket> socket)
{
	while (Ptr<Packet> packet = socket->Recv()) {
		if (!packet->GetSize())
			break;
		receiver->payload_octets += packet->GetSize();
	}
}

void fill(Ptr<Socket> socket, uint32_t)
{
	while (socket->GetTxAvailable() > 0)
		if (socket->Send(Create<Packet>(std::min(socket->GetTxAvailable(), CHUNK_OCTETS))) <= 0)
			break;
}

void follow(Sender *sender)
{
	sender->socket->TraceConnectWithoutContext(
		"CongestionWindow",
		Callback<void, uint32_t, uint32_t>([sender](uint32_t, uint32_t now) { sender->cwnd_octets = now; }));
	sender->socket->TraceConnectWithoutContext(
		"SlowStartThreshold",
		Callback<void, uint32_t, uint32_t>([sender](uint32_t, uint32_t now) { sender->ssthresh_octets = now; }));
	sender->socket->TraceConnectWithoutContext(
		"RTT", Callback<void, Time, Time>([sender](Time, Time now) { sender->srtt_us = now.GetMicroSeconds(); }));
	sender->socket->TraceConnectWithoutContext(
		"Tx", Callback<void, Ptr<const Packet>, const TcpHeader &, Ptr<const TcpSocketBase>>(
			      [sender](Ptr<const Packet> packet, const TcpHeader &header, Ptr<const TcpSocketBase>) {
				      SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();

				      if (!packet->GetSize())
					      return;
				      if (end <= sender->highest)
					      sender->again++;
				      sender->highest = std::max(sender->highest, end);
			      }));
}

Ptr<TcpSocketBase> tcp_socket(Ptr<Node> at, const std::string &kind)
{
	TypeId law;

	if (!TypeId::LookupByNameFailSafe("ns3::" + kind, &law))
		refuse("no TCP " + kind);
	Ptr<Socket> made = at->GetObject<TcpL4Protocol>()->CreateSocket(law, TcpClassicRecovery::GetTypeId());
	return DynamicCast<TcpSocketBase>(made);
}

// greedy FLOW FROM TO KIND MSS WINDOW_OCTETS INITIAL_PKTS RTO_MIN_S DELACK START_S
void make_greedy(std::istringstream &words)
{
	int flow = take<int>(words);
	Ptr<Node> from = node(take<std::string>(words));
	std::string to = take<std::string>(words), kind = take<std::string>(words);
	uint32_t mss = take<uint32_t>(words), window = take<uint32_t>(words), initial = take<uint32_t>(words);
	double rto_min_s = take<double>(words);
	uint32_t delack = take<uint32_t>(words);
	double start_s = take<double>(words);
	uint16_t port = FIRST_PORT + flow;

	Receiver *receiver = receivers[flow] = new Receiver{flow};
	Ptr<TcpSocketBase> listening = tcp_socket(node(to), kind);
	listening->SetAttribute("SegmentSize", UintegerValue(mss));
	listening->SetAttribute("DelAckCount", UintegerValue(delack));
	listening->SetAttribute("RcvBufSize", UintegerValue(window));
	listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
	listening->Listen();
	listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
				     Callback<void, Ptr<Socket>, const Address &>(
					     [receiver](Ptr<Socket> socket, const Address &) {
						     socket->SetRecvCallback(MakeBoundCallback(&receive, receiver));
					     }));

	Sender *sender = senders[flow] = new Sender{flow, tcp_socket(from, kind), double(mss)};
	sender->socket->SetAttribute("SegmentSize", UintegerValue(mss));
	sender->socket->SetAttribute("SndBufSize", UintegerValue(window));
	sender->socket->SetAttribute("InitialCwnd", UintegerValue(initial));
	sender->socket->SetAttribute("MinRto", TimeValue(Seconds(rto_min_s)));
	follow(sender);
	Ipv4Address address = plan.addresses[to];
	Simulator::Schedule(Seconds(start_s), [sender, address, port]() {
		sender->socket->Bind();
		sender->socket->SetSendCallback(MakeCallback(&fill));
		sender->socket->Connect(InetSocketAddress(address, port));
	});
}

void send_square(Ptr<Socket> socket, uint32_t octets, double gap_s, double period_s, double on_s, double start_s,
		 double stop_s, uint64_t sent)
{
	uint64_t in_burst = period_s > 0 ? static_cast<uint64_t>(on_s / gap_s + 0.5) : 1;
	double burst_s = period_s > 0 ? period_s : gap_s;
	double next_s = start_s + (sent + 1) / in_burst * burst_s + (sent + 1) % in_burst * gap_s;

	socket->Send(Create<Packet>(octets));
	if (next_s < stop_s)
		Simulator::Schedule(Seconds(next_s) - Simulator::Now(), &send_square, socket, octets, gap_s, period_s,
				    on_s, start_s, stop_s, sent + 1);
}

// square FLOW FROM TO PAYLOAD_OCTETS MBIT PERIOD_S ON_S START_S STOP_S; PERIOD_S 0: without a pause
void make_square(std::istringstream &words)
{
	int flow = take<int>(words);
	Ptr<Node> from = node(take<std::string>(words));
	std::string to = take<std::string>(words);
	uint32_t octets = take<uint32_t>(words);
	double mbit = take<double>(words), period_s = take<double>(words), on_s = take<double>(words);
	double start_s = take<double>(words), stop_s = take<double>(words);
	uint16_t port = FIRST_PORT + flow;

	Receiver *receiver = receivers[flow] = new Receiver{flow};
	Ptr<Socket> sink = Socket::CreateSocket(node(to), UdpSocketFactory::GetTypeId());
	sink->SetAttribute("RcvBufSize", UintegerValue(1 << 24));
	sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
	sink->SetRecvCallback(MakeBoundCallback(&receive, receiver));
	Ptr<Socket> source = Socket::CreateSocket(from, UdpSocketFactory::GetTypeId());
	source->Bind();
	source->Connect(InetSocketAddress(plan.addresses[to], port));
	Simulator::Schedule(Seconds(start_s), &send_square, source, octets, octets * 8 / (mbit * 1e6), period_s, on_s,
			    start_s, stop_s, 0);
}

// ------------------------------------------------------------------------------------- samples

void sample(double every_s)
{
	double now_s = Simulator::Now().GetSeconds();

	for (auto &[flow, receiver] : receivers)
		recv_file << now_s << " " << flow << " " << receiver->payload_octets << "\n";
	for (auto &[flow, sender] : senders)
		send_file << now_s << " " << flow << " " << sender->cwnd_octets / sender->mss_octets << " "
			  << sender->ssthresh_octets / sender->mss_octets << " " << sender->srtt_us << " "
			  << sender->again << "\n";
	for (Backlog *backlog : backlogs)
		queue_file << now_s << " " << backlog->id << " " << backlog->queue->GetNPackets() << " "
			   << backlog->queue->GetNBytes() << " " << backlog->queue->GetTotalDroppedPackets() << " "
			   << backlog->out_octets << " " << backlog->out_packets << "\n";
	Simulator::Schedule(Seconds(every_s), &sample, every_s);
}

void open_file(std::ofstream &file, const std::string &name)
{
	file.open(plan.folder + "/" + name);
	file.precision(12);
	if (!file)
		refuse("cannot write " + plan.folder + "/" + name);
}

// begin SEED MTU TIMESTAMPS LIMITED_TRANSMIT RTO_INITIAL_S
void begin(std::istringstream &words)
{
	RngSeedManager::SetSeed(1);
	RngSeedManager::SetRun(take<uint64_t>(words));
	// the packet on the wire is longer than in the testbed, where the IP packet counts
	double mtu = take<double>(words);
	plan.rate_factor = (mtu + PPP_OCTETS) / mtu;
	// without it, a sender that loses several packets of a window goes on sending what has arrived
	Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
	Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(take<int>(words)));
	Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(take<int>(words)));
	Config::SetDefault("ns3::RttEstimator::InitialEstimation", TimeValue(Seconds(take<double>(words))));
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2)
		refuse("usage: network PLAN");
	std::ifstream file(argv[1]);
	if (!file)
		refuse(std::string("cannot read ") + argv[1]);
	std::string path = argv[1];
	plan.folder = path.substr(0, path.find_last_of('/'));
	open_file(recv_file, "recv");
	open_file(send_file, "send");
	open_file(queue_file, "queue");
	std::ofstream web_file;
	open_file(web_file, "web");

	const std::map<std::string, void (*)(std::istringstream &)> words = {
		{"begin", begin},	    {"node", make_node},      {"link", make_link},
		{"greedy", make_greedy},    {"square", make_square},
		{"routes", [](std::istringstream &) { Ipv4GlobalRoutingHelper::PopulateRoutingTables(); }},
		{"sample", [](std::istringstream &rest) { Simulator::Schedule(Seconds(0), &sample, take<double>(rest)); }},
		{"finish", [](std::istringstream &rest) { Simulator::Stop(Seconds(take<double>(rest))); }},
	};
	for (std::string line; std::getline(file, line);) {
		std::istringstream rest(line);
		std::string word;

		if (!(rest >> word) || word[0] == '#')
			continue;
		if (!words.count(word))
			refuse("no word " + word);
		words.at(word)(rest);
	}
	Simulator::Run();
	Simulator::Destroy();
	return 0;
}
