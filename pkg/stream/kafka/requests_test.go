package kafka

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRequests holds each byte of the requests that are written by hand, as another client writes them, and what is
// read of their answers; one that is cut short, or about another partition, is none.
func TestRequests(t *testing.T) {
	const topic, partition = "topic", 7
	text := kmsg.StringPtr
	batch := encode(some(2), 1, 2, 3, 4)
	for _, x := range []struct {
		name   string
		ask    func(cn *conn, p *place) (any, error)
		wants  kmsg.Request
		answer kmsg.Response
		result any
		unread int // bytes at the end of the answer
	}{
		{"produce", func(cn *conn, p *place) (any, error) { return cn.produce(p, 1234, batch) },
			&kmsg.ProduceRequest{Version: produceVersion, Acks: -1, TimeoutMillis: 1234,
				Topics: []kmsg.ProduceRequestTopic{{Topic: topic,
					Partitions: []kmsg.ProduceRequestTopicPartition{{Partition: partition, Records: batch}}}}},
			&kmsg.ProduceResponse{Version: produceVersion, ThrottleMillis: 9,
				Topics: []kmsg.ProduceResponseTopic{{Topic: topic,
					Partitions: []kmsg.ProduceResponseTopicPartition{{Partition: partition, ErrorCode: 87,
						BaseOffset: 77, LogAppendTime: 5, LogStartOffset: 6, ErrorMessage: text("all"),
						ErrorRecords: []kmsg.ProduceResponseTopicPartitionErrorRecord{{ErrorMessage: text("why")},
							{RelativeOffset: 1}}}}}}},
			produced{87, 77, "why"}, 4},
		{"fetch", func(cn *conn, p *place) (any, error) { return cn.fetch(p, 99, 500, 1000, committed) },
			&kmsg.FetchRequest{Version: fetchVersion, ReplicaID: -1, MaxWaitMillis: 500, MinBytes: 1, MaxBytes: 1000,
				IsolationLevel: 1, SessionEpoch: -1, Topics: []kmsg.FetchRequestTopic{{Topic: topic,
					Partitions: []kmsg.FetchRequestTopicPartition{{Partition: partition, CurrentLeaderEpoch: -1,
						FetchOffset: 99, LogStartOffset: -1, PartitionMaxBytes: 1000}}}}},
			&kmsg.FetchResponse{Version: fetchVersion, ThrottleMillis: 9, SessionID: 8,
				Topics: []kmsg.FetchResponseTopic{{Topic: topic,
					Partitions: []kmsg.FetchResponseTopicPartition{{Partition: partition, ErrorCode: 3,
						HighWatermark: 20, LastStableOffset: 15, LogStartOffset: 1, PreferredReadReplica: -1,
						AbortedTransactions: []kmsg.FetchResponseTopicPartitionAbortedTransaction{
							{ProducerID: 3, FirstOffset: 4}, {ProducerID: 5, FirstOffset: 6}},
						RecordBatches: batch}}}}},
			fetched{3, 20, 15, []aborted{{3, 4}, {5, 6}}, batch}, 0},
		{"list offsets", func(cn *conn, p *place) (any, error) {
			var at [1]int64
			code, err := cn.offsets(p, []position{{3, -2, committed}}, at[:])
			return []int64{int64(code), at[0]}, err
		},
			&kmsg.ListOffsetsRequest{Version: listOffsetsVersion, ReplicaID: 3, IsolationLevel: 1,
				Topics: []kmsg.ListOffsetsRequestTopic{{Topic: topic,
					Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Partition: partition, CurrentLeaderEpoch: -1,
						Timestamp: -2}}}}},
			&kmsg.ListOffsetsResponse{Version: listOffsetsVersion, ThrottleMillis: 9,
				Topics: []kmsg.ListOffsetsResponseTopic{{Topic: topic,
					Partitions: []kmsg.ListOffsetsResponseTopicPartition{{Partition: partition, ErrorCode: 6,
						Timestamp: 5, Offset: 77, LeaderEpoch: 4}}}}},
			[]int64{6, 77}, 4},
		{"delete records", func(cn *conn, p *place) (any, error) { return cn.deleteRecords(p, 99, 1234) },
			&kmsg.DeleteRecordsRequest{Version: deleteRecordsVersion, TimeoutMillis: 1234,
				Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: topic,
					Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: 99}}}}},
			&kmsg.DeleteRecordsResponse{Version: deleteRecordsVersion, ThrottleMillis: 9,
				Topics: []kmsg.DeleteRecordsResponseTopic{{Topic: topic,
					Partitions: []kmsg.DeleteRecordsResponseTopicPartition{{Partition: partition, LowWatermark: 5,
						ErrorCode: 6}}}}},
			int16(6), 0},
		{"describe producers", func(cn *conn, p *place) (any, error) {
			all, code, err := cn.producers(p)
			if err == nil && code != 6 {
				t.Errorf("code %d", code)
			}
			return all, err
		},
			&kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: topic,
				Partitions: []int32{partition}}}},
			&kmsg.DescribeProducersResponse{ThrottleMillis: 9,
				Topics: []kmsg.DescribeProducersResponseTopic{{Topic: topic,
					Partitions: []kmsg.DescribeProducersResponseTopicPartition{{Partition: partition, ErrorCode: 6,
						ErrorMessage: text("why"),
						ActiveProducers: []kmsg.DescribeProducersResponseTopicPartitionActiveProducer{
							{ProducerID: 1, ProducerEpoch: 2, LastSequence: 9, LastTimestamp: 9, CoordinatorEpoch: 9,
								CurrentTxnStartOffset: 3},
							{ProducerID: 4, ProducerEpoch: 5, LastSequence: 9, LastTimestamp: 9, CoordinatorEpoch: 9,
								CurrentTxnStartOffset: -1}}}}}}},
			[]producer{{1, 2, 3}, {4, 5, -1}}, 3},
	} {
		var body []byte
		flexible := x.answer.IsFlexible()
		if flexible {
			body = []byte{0} // no tags in the header
		}
		body = x.answer.AppendTo(body)
		ask := func(body []byte, p place) (any, question, error) {
			cn, asked := answering(body, 0)
			defer cn.Close()
			cn.clientID = "us"
			cn.versions = map[protocol.ApiKey][2]int16{describeProducers: {}}
			got, err := x.ask(cn, &p)
			return got, <-asked, err
		}
		got, q, err := ask(body, place{Topic: topic, Partition: partition})
		if err != nil || !reflect.DeepEqual(got, x.result) {
			t.Errorf("%s: %+v, want %+v; %v", x.name, got, x.result, err)
		}
		want := appendString(nil, "us")
		if flexible {
			want = append(want, 0)
		}
		want = x.wants.AppendTo(want)
		if q.key != x.wants.Key() || q.version != x.wants.GetVersion() || q.corr != 1 || !bytes.Equal(q.rest, want) {
			t.Errorf("%s: asked %+v\nwant %x", x.name, q, want)
		}
		for n := 1; n < len(body)-x.unread; n++ {
			if got, _, err := ask(body[:n], place{Topic: topic, Partition: partition}); !errors.Is(err, errShort) {
				t.Errorf("%s: %d bytes of %d: %+v, %v", x.name, n, len(body), got, err)
			}
		}
		for _, other := range []place{{Topic: topic, Partition: partition + 1},
			{Topic: "topik", Partition: partition}} {
			if got, _, err := ask(body, other); !errors.Is(err, errShort) || !isLost(err) {
				t.Errorf("%s: of %+v: %+v, %v", x.name, other, got, err)
			}
		}
	}
}
