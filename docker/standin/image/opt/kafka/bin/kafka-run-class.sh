#!/bin/bash
# Runs a class of Kafka's with the KAFKA_* options that the official scripts know.
set -euo pipefail

# The archive is bound to the exact class path, so its order must not depend on the file system.
export LC_ALL=C
jars=(/opt/kafka/libs/*.jar)
class_path=$(IFS=:; printf '%s' "${jars[*]}")

jmx=${KAFKA_JMX_OPTS-}
if [ -n "${JMX_PORT-}" ]; then
  jmx="$jmx -Dcom.sun.management.jmxremote.port=$JMX_PORT"
fi

# The options are lists of words on purpose.
# shellcheck disable=SC2086
exec /opt/java/bin/java -XX:SharedArchiveFile=/opt/kafka/kafka.jsa -Xshare:auto \
  ${KAFKA_HEAP_OPTS:--Xmx256M} \
  ${KAFKA_JVM_PERFORMANCE_OPTS:--server -XX:+UseG1GC} \
  ${KAFKA_GC_LOG_OPTS-} $jmx \
  ${KAFKA_LOG4J_OPTS:--Dlog4j2.configurationFile=/opt/kafka/config/tools-log4j2.yaml} \
  -cp "$class_path" ${KAFKA_OPTS-} "$@"
