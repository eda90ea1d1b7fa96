# Removes everything from a recording that no rule depends on: jq --compact-output --from-file trim.jq FILE
def repeated: del(.availableBytes, .capacityBytes, .inodesFree, .inodes);
# The pod statistics of a sample, without times of measurement.
def figures: [.pods[] | [.podRef.name, .memory.workingSetBytes, .["ephemeral-storage"].usedBytes,
  ([.volume[]? | [.name, .usedBytes]] | sort),
  ([.containers[]? | [.name, .startTime, .memory.workingSetBytes, .rootfs.usedBytes, .logs.usedBytes]] | sort)]] | sort;
# Applies a change unless the input is null.
def there(change): if . then change else . end;
(.podsCreated[0].metadata.creationTimestamp) as $begin
| .events |= map(select(.involvedObject.kind == "Pod" or (.lastTimestamp // "") >= $begin))
| .summaryBefore |= {node: .node}
| . as $all
| .samples |= [range(length) as $i | select($i == 0 or $i == length - 1
        or ($all.samples[$i] | figures) != ($all.samples[$i - 1] | figures)
        or ($all.samples[$i] | figures) != ($all.samples[$i + 1] | figures)) | .[$i]]
| .samples |= map(.node.memory |= del(.pageFaults, .majorPageFaults)
    | .pods |= map(with_entries(
        if .key == "memory" then .value |= there(del(.pageFaults, .majorPageFaults))
        elif .key == "ephemeral-storage" then .value |= there(repeated)
        elif .key == "volume" then .value |= there(map(repeated))
        elif .key == "containers" then .value |= there(map(with_entries(
          if .key == "rootfs" or .key == "logs" then .value |= there(repeated) else . end)))
        else . end)))
