from hubbub_topic.kafka.brokers import (
    BrokerSecurity as BrokerSecurity,
    Brokers as Brokers,
    MECHANISMS as MECHANISMS,
    Mechanism as Mechanism,
    aiokafka_options as aiokafka_options,
    security_of as security_of,
)
from hubbub_topic.kafka.dead_letters import KafkaDeadTopic as KafkaDeadTopic
from hubbub_topic.kafka.growing_log import GrowingLog as GrowingLog, least_start as least_start
from hubbub_topic.kafka.log import DEFAULT_REBUILD_S as DEFAULT_REBUILD_S, KafkaLog as KafkaLog
from hubbub_topic.kafka.topic import (
    delete_topics as delete_topics,
    readers_of as readers_of,
    topics_of as topics_of,
)
from hubbub_topic.kafka.topic import (
    DEFAULT_RETENTION_S as DEFAULT_RETENTION_S,
    Topic as Topic,
    check_topic as check_topic,
    create_topic as create_topic,
    describe_topic as describe_topic,
)
