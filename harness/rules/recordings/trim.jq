# What a recording loses before it is kept here: jq --compact-output --from-file trim.jq
def repeated: del(.availableBytes, .capacityBytes, .inodesFree, .inodes);
# A sample's figures of pods, without the times of measurement.
def figures: [.pods[] | [.podRef.name, .memory.workingSetBytes, .["ephemeral-storage"].usedBytes,
  ([.volume[]? | [.name, .usedBytes]] | sort),
  ([.containers[]? | [.name, .startTime, .memory.workingSetBytes, .rootfs.usedBytes, .logs.usedBytes]] | sort)]] | sort;
# Applies a change where there is something to change.
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
